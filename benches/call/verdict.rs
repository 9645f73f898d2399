//! What a long run is held to. The samples' first fifth warms up; the second is
//! what the last is compared with. Latency is judged by the slices in which the
//! machine had little else to do; memory, descriptors and failures always.
//! Before a run is judged the judge is: made-up runs that leak, slow down or
//! fail must each be found out.

use crate::figures::Row;

/// By how much memory may have risen, KiB: as the line through its samples
/// after the warm-up, and from fifth to fifth. Over an hour of some hundred
/// calls a second it is a few bytes a call.
pub(crate) const RISE_KIB: f64 = 8.0 * 1024.0;
/// By how many open descriptors may have grown, at their fewest in a fifth:
/// connections to the vendor and sockets of runs come and go.
pub(crate) const DESCRIPTORS: f64 = 16.0;
/// By what the 99th percentile of the last fifth may be above the earlier one.
pub(crate) const SLOWER: f64 = 3.0;

/// Slices of a fifth in which the machine had little else to do, at least.
const QUIET: usize = 3;

/// The process at one moment.
#[derive(Clone, Copy)]
pub(crate) struct Sample {
    /// Since the load began.
    pub(crate) seconds: f64,
    /// Of this process.
    pub(crate) resident_kib: f64,
    /// Open in this process.
    pub(crate) descriptors: f64,
}

/// Some seconds of calls.
#[derive(Clone, Copy)]
pub(crate) struct Slice {
    /// Their 99th percentile, milliseconds.
    pub(crate) p99: f64,
    /// The machine did little for others.
    pub(crate) quiet: bool,
}

/// All of a run that is judged.
#[derive(Clone, Default)]
pub(crate) struct Seen {
    /// One a second.
    pub(crate) samples: Vec<Sample>,
    /// In their order.
    pub(crate) slices: Vec<Slice>,
    /// Calls that were answered as they should.
    pub(crate) calls: usize,
    /// Those that were not.
    pub(crate) failed: usize,
}

/// What does not hold, one sentence each.
pub(crate) fn judge(seen: &Seen) -> Vec<String> {
    let mut broken = Vec::new();
    if seen.calls == 0 || seen.samples.len() < 5 || seen.slices.len() < 5 {
        broken.push("the run was too short to be judged".to_owned());
        return broken;
    }
    if seen.failed > 0 {
        broken.push(format!("{} of {} calls failed", seen.failed, seen.calls + seen.failed));
    }
    let resident: Vec<f64> = seen.samples.iter().map(|sample| sample.resident_kib).collect();
    let line = rise(&seen.samples[seen.samples.len() / 5..]);
    if line > RISE_KIB {
        broken.push(format!(
            "resident memory rises by {line:.0} KiB after the warm-up, {RISE_KIB} allowed"
        ));
    }
    let (early, late) = (median(second_fifth(&resident)), median(last_fifth(&resident)));
    if late > early + RISE_KIB {
        broken.push(format!(
            "resident memory was {early:.0} KiB and is {late:.0}, {RISE_KIB} more allowed"
        ));
    }
    let descriptors: Vec<f64> = seen.samples.iter().map(|sample| sample.descriptors).collect();
    let (early, late) = (least(second_fifth(&descriptors)), least(last_fifth(&descriptors)));
    if late > early + DESCRIPTORS {
        broken.push(format!(
            "{early:.0} descriptors were open and {late:.0} are, {DESCRIPTORS} more allowed"
        ));
    }
    if let Some((early, late)) = latency(seen)
        && late > early * SLOWER
    {
        broken.push(format!(
            "the 99th percentile was {early:.1} ms and is {late:.1}, {SLOWER} times as much allowed"
        ));
    }
    broken
}

/// The 99th percentile at the beginning and at the end, milliseconds, if the
/// machine had little else to do in both.
pub(crate) fn latency(seen: &Seen) -> Option<(f64, f64)> {
    let of = |slices: &[Slice]| {
        let quiet: Vec<f64> =
            slices.iter().filter(|slice| slice.quiet).map(|slice| slice.p99).collect();
        (quiet.len() >= QUIET).then(|| median(&quiet))
    };
    Some((of(second_fifth(&seen.slices))?, of(last_fifth(&seen.slices))?))
}

fn second_fifth<T>(all: &[T]) -> &[T] {
    let fifth = all.len() / 5;
    &all[fifth..fifth * 2]
}

fn last_fifth<T>(all: &[T]) -> &[T] {
    &all[all.len() - all.len() / 5..]
}

fn median(values: &[f64]) -> f64 {
    let mut row = Row::new("");
    row.push(values.to_vec());
    row.percentile(50.0)
}

fn least(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}

/// By how much the least-squares line through resident memory rises from the
/// first of these samples to the last, KiB.
fn rise(samples: &[Sample]) -> f64 {
    let count = samples.len() as f64;
    let mean = |of: fn(&Sample) -> f64| samples.iter().map(of).sum::<f64>() / count;
    let (middle, level) = (mean(|sample| sample.seconds), mean(|sample| sample.resident_kib));
    let (mut together, mut alone) = (0.0, 0.0);
    for sample in samples {
        let away = sample.seconds - middle;
        together += away * (sample.resident_kib - level);
        alone += away * away;
    }
    let span = samples.last().map_or(0.0, |last| last.seconds) - samples[0].seconds;
    if alone > 0.0 { together / alone * span } else { 0.0 }
}

/// Panics when the judge lets through what it is there to find.
pub(crate) fn prove() {
    let well = Seen {
        samples: (0..100)
            .map(|at| Sample {
                seconds: f64::from(at),
                resident_kib: 60_000.0 + f64::from(at % 7) * 300.0,
                descriptors: 80.0 + f64::from(at % 5),
            })
            .collect(),
        slices: (0..20)
            .map(|at| Slice { p99: 12.0 + f64::from(at % 3), quiet: at % 4 > 0 })
            .collect(),
        calls: 1_000,
        failed: 0,
    };
    assert_eq!(judge(&well), Vec::<String>::new());
    let refused = |word: &str, change: &dyn Fn(&mut Seen)| {
        let mut ill = well.clone();
        change(&mut ill);
        let said = judge(&ill);
        assert!(said.iter().any(|said| said.contains(word)), "{word}: {said:?}");
    };
    refused("rises", &|seen| {
        for sample in &mut seen.samples {
            sample.resident_kib += sample.seconds * RISE_KIB / 70.0;
        }
    });
    refused("is ", &|seen| {
        for sample in &mut seen.samples[80..] {
            sample.resident_kib += RISE_KIB * 1.2;
        }
    });
    refused("descriptors", &|seen| {
        for sample in &mut seen.samples {
            sample.descriptors += sample.seconds * 0.5;
        }
    });
    refused("percentile", &|seen| {
        for slice in &mut seen.slices[14..] {
            slice.p99 *= SLOWER * 1.2;
        }
    });
    refused("failed", &|seen| seen.failed = 1);
    refused("too short", &|seen| seen.samples.truncate(4));
}
