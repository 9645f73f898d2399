//! A time as a person reads it, UTC and to the minute, and a duration. Pure; no
//! clock is read.

/// `2026-11-30 21:05 UTC`.
pub(crate) fn time(ms: i64) -> String {
    let minutes = ms.div_euclid(60_000);
    let (days, minute) = (minutes.div_euclid(24 * 60), minutes.rem_euclid(24 * 60));
    let (year, month, day) = date(days);
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02} UTC", minute / 60, minute % 60)
}

/// `480 ms`, `12.5 s`, `3 min`.
pub(crate) fn duration(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..120_000 => format!("{}.{} s", ms / 1_000, ms % 1_000 / 100),
        _ => format!("{} min", ms / 60_000),
    }
}

/// How long ago, in the largest unit that is full.
pub(crate) fn age(ms: i64) -> String {
    match ms.max(0) / 60_000 {
        0 => "just now".to_owned(),
        minutes @ 1..120 => format!("{minutes} min ago"),
        minutes @ 120..2_880 => format!("{} h ago", minutes / 60),
        minutes => format!("{} days ago", minutes / 1_440),
    }
}

/// Days since 1970 to a Gregorian date, counted in eras of 400 years that start
/// in March, so that the leap day is the last of its year.
fn date(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_reads_at_a_glance() {
        for (ms, said) in [(0, "0 ms"), (999, "999 ms"), (1_250, "1.2 s"), (180_000, "3 min")] {
            assert_eq!(duration(ms), said);
        }
    }

    #[test]
    fn known_moments() {
        assert_eq!(time(0), "1970-01-01 00:00 UTC");
        assert_eq!(time(951_782_399_000), "2000-02-28 23:59 UTC");
        assert_eq!(time(951_782_400_000), "2000-02-29 00:00 UTC");
        assert_eq!(time(1_767_225_599_999), "2025-12-31 23:59 UTC");
        assert_eq!(time(-1), "1969-12-31 23:59 UTC");
    }
}
