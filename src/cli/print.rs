//! What a command says: text for a person or JSON for a program on stdout,
//! `error[code]: …` and `next: …` on stderr. Everything an agent or a vendor
//! wrote passes through [`visible`], so that no text can move the cursor,
//! recolour a line or hide a character from the person who decides.

use crate::failure::Failure;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::ExitCode;

/// What a command has to say.
#[derive(Debug, Default)]
pub(crate) struct Said {
    /// For a person.
    pub(crate) text: String,
    /// For a program.
    pub(crate) json: Value,
    /// Said besides, when the answer itself is a refusal or a finding.
    pub(crate) failure: Option<Failure>,
}

impl Said {
    /// Text and JSON of a success.
    pub(crate) fn new(text: impl Into<String>, json: Value) -> Self {
        Self { text: text.into(), json, failure: None }
    }

    /// The same, ending with a failure's exit code.
    pub(crate) fn failing(mut self, failure: Failure) -> Self {
        self.failure = Some(failure);
        self
    }

    /// The failure beside the text, which shows the findings already.
    pub(crate) fn apart(&self) -> Option<Failure> {
        self.failure.clone().map(|failure| Failure { details: None, ..failure })
    }
}

/// Prints and answers the exit code.
pub(crate) fn end(done: Result<Said, Failure>, json: bool) -> ExitCode {
    let (said, failure) = match done {
        Ok(said) => {
            let failure = if json { said.failure.clone() } else { said.apart() };
            (Some(said), failure)
        }
        Err(failure) => (None, Some(failure)),
    };
    if let Some(said) = said {
        let text = if json {
            if said.json.is_null() { String::new() } else { spelt(&format!("{:#}", said.json)) }
        } else {
            said.text
        };
        let text = text.trim_end();
        // A closed pipe is the reader's choice, not an error of ours.
        if !text.is_empty() {
            let _ = writeln!(std::io::stdout().lock(), "{text}");
        }
    }
    match failure {
        None => ExitCode::SUCCESS,
        Some(failure) => {
            complain(&failure, json);
            failure.exit().into()
        }
    }
}

/// Puts a failure on stderr.
pub(crate) fn complain(failure: &Failure, json: bool) {
    let mut stderr = std::io::stderr().lock();
    let _ = if json {
        writeln!(stderr, "{}", spelt(&json!({ "error": failure }).to_string()))
    } else {
        stderr.write_all(self::failure(failure).as_bytes())
    };
}

/// A failure as a person reads it, with what a check found.
pub(crate) fn failure(failure: &Failure) -> String {
    let found = failure.details.as_deref().filter(|_| failure.code == "check_failed");
    let found = found.map(super::check::diagnostics).unwrap_or_default();
    // The first finding is told where it stands, with its line.
    let message = match failure.message.split_once(": ") {
        Some((message, _)) if !found.is_empty() => message,
        _ => &failure.message,
    };
    let mut text = format!("error[{}]: {}\n{found}", failure.code, visible(message));
    if !failure.next.is_empty() {
        let _ = writeln!(text, "next: {}", visible(&failure.next));
    }
    text
}

/// The same JSON, with every character in its texts that is not plainly visible
/// written as an escape.
pub(crate) fn spelt(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for character in json.chars() {
        // A line end between two values is no part of a text.
        if hides(character) && character != '\n' {
            for unit in character.encode_utf16(&mut [0; 2]) {
                let _ = write!(text, "\\u{unit:04x}");
            }
        } else {
            text.push(character);
        }
    }
    text
}

/// The text with every character that is not plainly visible spelt out.
pub(crate) fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        if hides(character) {
            let _ = write!(shown, "\\u{{{:x}}}", u32::from(character));
        } else {
            shown.push(character);
        }
    }
    shown
}

/// Control, bidirectional, zero-width and other invisible characters. A line
/// end counts too: what is quoted stays on its line.
fn hides(character: char) -> bool {
    character.is_control()
        || matches!(u32::from(character),
            0xad | 0x34f | 0x61c | 0x115f..=0x1160 | 0x17b4..=0x17b5 | 0x180b..=0x180f
            | 0x200b..=0x200f | 0x2028..=0x202e | 0x2060..=0x206f | 0x3164 | 0xfe00..=0xfe0f
            | 0xfeff | 0xffa0 | 0xfff0..=0xfffb | 0x1bca0..=0x1bca3 | 0x1d173..=0x1d17a
            | 0xe0000..=0xe0fff)
}

/// The text of a field, made visible; empty when it is missing.
pub(crate) fn field(value: &Value, name: &str) -> String {
    match &value[name] {
        Value::Null => String::new(),
        Value::String(text) => visible(text),
        other => visible(&other.to_string()),
    }
}

/// A list as aligned columns; `empty` when there is nothing in it.
pub(crate) fn table(head: &[&str], rows: &[Vec<String>], empty: &str) -> String {
    if rows.is_empty() {
        return empty.to_owned();
    }
    debug_assert!(head.iter().all(|name| !name.is_empty()), "a column without a name: {head:?}");
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.chain([head[column].chars().count()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let mut text = String::new();
    let head = head.iter().map(|cell| (*cell).to_owned()).collect();
    for row in [&head].into_iter().chain(rows) {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            let _ = write!(line, "{cell:<width$}  ");
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// Milliseconds UTC as `2026-01-31 23:59:59Z`.
pub(crate) fn time(value: &Value) -> String {
    let Some(ms) = value.as_i64() else { return "never".into() };
    let (days, second) = (ms.div_euclid(86_400_000), ms.div_euclid(1000).rem_euclid(86_400));
    // Days to a civil date, counted in eras of 400 years that begin in March.
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::{spelt, time, visible};
    use serde_json::json;

    #[test]
    fn text_of_strangers_cannot_hide_or_move() {
        for (text, shown) in [
            ("plain ünï", "plain ünï"),
            ("a\u{1b}[2Jb", "a\\u{1b}[2Jb"),
            ("a\u{202e}b", "a\\u{202e}b"),
            ("a\u{200b}b\nc", "a\\u{200b}b\\u{a}c"),
            ("\u{e0041}", "\\u{e0041}"),
        ] {
            assert_eq!(visible(text), shown);
        }
    }

    #[test]
    fn json_of_strangers_is_the_same_and_hides_nothing_either() {
        let value =
            json!({ "name": "a\u{202e}b\u{200b}c\u{9b}2J\u{e0041}", "list": ["ü", "\u{1b}"] });
        for text in [value.to_string(), format!("{value:#}")] {
            let shown = spelt(&text);
            assert!(shown.contains(r"a\u202eb\u200bc\u009b2J\udb40\udc41") && shown.contains('ü'));
            assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), value);
        }
    }

    #[test]
    fn times_are_civil() {
        for (ms, text) in [
            (0, "1970-01-01 00:00:00Z"),
            (951_782_399_000_i64, "2000-02-28 23:59:59Z"),
            (951_782_400_000, "2000-02-29 00:00:00Z"),
            (4_107_542_399_999, "2100-02-28 23:59:59Z"),
            (-1000, "1969-12-31 23:59:59Z"),
        ] {
            assert_eq!(time(&json!(ms)), text);
        }
    }
}
