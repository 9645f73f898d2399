//! Two texts line by line, as a unified diff: what a person looks at before they
//! answer for changed code again. Pure and bounded.

use std::fmt::Write as _;

/// Lines of context around a change.
const CONTEXT: usize = 3;
/// Lines of each text that are compared; the rest is said to be left out.
const LINES_MAX: usize = 2_000;

/// What a line became.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line<'a> {
    Same(&'a str),
    Old(&'a str),
    New(&'a str),
}

/// The difference from one named text to another; empty when they are equal.
pub(crate) fn unified(old: (&str, &str), new: (&str, &str)) -> String {
    let (before, after): (Vec<&str>, Vec<&str>) =
        (old.1.lines().take(LINES_MAX).collect(), new.1.lines().take(LINES_MAX).collect());
    let lines = compare(&before, &after);
    if lines.iter().all(|line| matches!(line, Line::Same(_))) {
        return String::new();
    }
    let mut text = format!("--- {}\n+++ {}\n", old.0, new.0);
    let near = |at: usize| {
        let (from, to) = (at.saturating_sub(CONTEXT), (at + CONTEXT + 1).min(lines.len()));
        lines[from..to].iter().any(|line| !matches!(line, Line::Same(_)))
    };
    let (mut old_at, mut new_at, mut shown) = (0, 0, false);
    for (at, line) in lines.iter().enumerate() {
        let shows = near(at);
        if shows && !shown {
            let _ = writeln!(text, "@@ -{} +{} @@", old_at + 1, new_at + 1);
        }
        shown = shows;
        match line {
            Line::Same(line) => {
                if shows {
                    let _ = writeln!(text, " {line}");
                }
                old_at += 1;
                new_at += 1;
            }
            Line::Old(line) => {
                let _ = writeln!(text, "-{line}");
                old_at += 1;
            }
            Line::New(line) => {
                let _ = writeln!(text, "+{line}");
                new_at += 1;
            }
        }
    }
    if old.1.lines().nth(LINES_MAX).is_some() || new.1.lines().nth(LINES_MAX).is_some() {
        let _ = writeln!(text, "(lines after {LINES_MAX} are not compared)");
    }
    text
}

/// Longest common subsequence between what the texts begin and end alike with.
fn compare<'a>(old: &[&'a str], new: &[&'a str]) -> Vec<Line<'a>> {
    let head = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let tails = old[head..].iter().rev().zip(new[head..].iter().rev());
    let tail = tails.take_while(|(a, b)| a == b).count();
    let (a, b) = (&old[head..old.len() - tail], &new[head..new.len() - tail]);
    // longest[i][j]: of a from i and b from j
    let width = b.len() + 1;
    let mut longest = vec![0_u16; (a.len() + 1) * width];
    for i in (0..a.len()).rev() {
        for j in (0..b.len()).rev() {
            longest[i * width + j] = if a[i] == b[j] {
                longest[(i + 1) * width + j + 1] + 1
            } else {
                longest[(i + 1) * width + j].max(longest[i * width + j + 1])
            };
        }
    }
    let mut lines: Vec<Line<'a>> = old[..head].iter().map(|line| Line::Same(line)).collect();
    let (mut i, mut j) = (0, 0);
    while i < a.len() || j < b.len() {
        if i < a.len() && j < b.len() && a[i] == b[j] {
            lines.push(Line::Same(a[i]));
            i += 1;
            j += 1;
        } else if j == b.len()
            || (i < a.len() && longest[(i + 1) * width + j] >= longest[i * width + j + 1])
        {
            lines.push(Line::Old(a[i]));
            i += 1;
        } else {
            lines.push(Line::New(b[j]));
            j += 1;
        }
    }
    lines.extend(old[old.len() - tail..].iter().map(|line| Line::Same(line)));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn diff(old: &str, new: &str) -> String {
        unified(("a", old), ("b", new))
    }

    #[test]
    fn equal_texts_differ_in_nothing() {
        assert_eq!(diff("x\ny\n", "x\ny"), "");
        assert_eq!(diff("", ""), "");
    }

    #[test]
    fn changes_stand_in_their_context() {
        let old: String = (1..=20).map(|at| format!("line {at}\n")).collect();
        let new = old.replace("line 10\n", "line ten\nand more\n");
        assert_eq!(
            diff(&old, &new),
            "--- a\n+++ b\n@@ -7 +7 @@\n line 7\n line 8\n line 9\n-line 10\n+line ten\n\
             +and more\n line 11\n line 12\n line 13\n"
        );
        assert_eq!(diff("", "new\n"), "--- a\n+++ b\n@@ -1 +1 @@\n+new\n");
        assert_eq!(diff("old\n", ""), "--- a\n+++ b\n@@ -1 +1 @@\n-old\n");
    }
}
