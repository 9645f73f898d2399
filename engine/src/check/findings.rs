//! Collects what the check finds, by byte offset, and turns it into diagnostics
//! with line, column and the quoted line. What counts as a finding is the
//! business of the files that find it.

use super::{Diagnostic, Severity};

/// More findings than this are noise to whoever reads them.
const FINDINGS_MAX: usize = 100;
/// Longest quoted line, in characters.
const QUOTE_MAX: usize = 200;

/// Everything found so far in one source.
pub(super) struct Findings<'s> {
    source: &'s str,
    found: Vec<Found>,
}

struct Found {
    offset: usize,
    severity: Severity,
    code: &'static str,
    message: String,
}

impl<'s> Findings<'s> {
    pub(super) fn new(source: &'s str) -> Self {
        Self { source, found: Vec::new() }
    }

    /// Publishing is refused.
    pub(super) fn error(&mut self, offset: u32, code: &'static str, message: impl Into<String>) {
        self.add(Severity::Error, offset, code, message.into());
    }

    /// Worth knowing.
    pub(super) fn advice(&mut self, offset: u32, code: &'static str, message: impl Into<String>) {
        self.add(Severity::Advice, offset, code, message.into());
    }

    pub(super) fn has_errors(&self) -> bool {
        self.found.iter().any(|found| found.severity == Severity::Error)
    }

    pub(super) fn has_error_at(&self, offset: u32) -> bool {
        let offset = usize::try_from(offset).unwrap_or(usize::MAX);
        let is_error = |found: &Found| found.severity == Severity::Error;
        self.found.iter().any(|found| found.offset == offset && is_error(found))
    }

    /// In source order, without repeats, at most [`FINDINGS_MAX`]; errors are
    /// kept before advice when there are more.
    pub(super) fn into_diagnostics(mut self) -> Vec<Diagnostic> {
        if self.found.len() > FINDINGS_MAX {
            self.found.sort_by_key(|found| (found.severity == Severity::Advice, found.offset));
            self.found.truncate(FINDINGS_MAX);
        }
        self.found.sort_by_key(|found| found.offset);
        let lines = Lines::of(self.source);
        let mut diagnostics: Vec<Diagnostic> = Vec::with_capacity(self.found.len());
        for found in self.found {
            let (line, column, text) = lines.locate(found.offset);
            let diagnostic = Diagnostic {
                severity: found.severity,
                code: found.code.to_owned(),
                message: found.message,
                line,
                column,
                text,
            };
            if !diagnostics.contains(&diagnostic) {
                diagnostics.push(diagnostic);
            }
        }
        diagnostics
    }

    fn add(&mut self, severity: Severity, offset: u32, code: &'static str, message: String) {
        // A hostile module can hold a hundred thousand faults; keep memory bounded.
        if self.found.len() < FINDINGS_MAX * 20 {
            let offset = usize::try_from(offset).unwrap_or(usize::MAX);
            self.found.push(Found { offset, severity, code, message });
        }
    }
}

/// Where the lines of a source start; JavaScript has four line terminators.
struct Lines<'s> {
    source: &'s str,
    starts: Vec<usize>,
}

impl<'s> Lines<'s> {
    fn of(source: &'s str) -> Self {
        let mut starts = vec![0];
        let mut characters = source.char_indices().peekable();
        while let Some((at, character)) = characters.next() {
            let crlf =
                character == '\r' && characters.peek().is_some_and(|(_, next)| *next == '\n');
            if matches!(character, '\n' | '\r' | '\u{2028}' | '\u{2029}') && !crlf {
                starts.push(at + character.len_utf8());
            }
        }
        Self { source, starts }
    }

    fn locate(&self, offset: usize) -> (u32, u32, String) {
        let mut offset = offset.min(self.source.len());
        while !self.source.is_char_boundary(offset) {
            offset -= 1;
        }
        let line = self.starts.partition_point(|start| *start <= offset).saturating_sub(1);
        let start = self.starts[line];
        let end = self.starts.get(line + 1).copied().unwrap_or(self.source.len());
        let column = self.source[start..offset].encode_utf16().count();
        let whole = self.source[start..end].trim_end_matches(['\n', '\r', '\u{2028}', '\u{2029}']);
        // Of a very long line, quote the part that holds the fault.
        let before = self.source[start..offset].chars().count();
        let skip = if before < QUOTE_MAX { 0 } else { before - QUOTE_MAX / 2 };
        let text = whole.chars().skip(skip).take(QUOTE_MAX).collect();
        (number(line), number(column), text)
    }
}

/// One-based.
fn number(index: usize) -> u32 {
    u32::try_from(index + 1).unwrap_or(u32::MAX)
}
