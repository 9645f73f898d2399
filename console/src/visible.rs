//! Makes text that somebody else wrote harmless to look at: whatever a reader
//! could not see, or that moves other text around, is written out as its code.
//! Pure. Escaping for HTML is the templates' business.

/// Combining marks on one character; a pile of them covers the lines around it.
const MARKS_MAX: usize = 2;

/// One line: line breaks and tabs are written out too.
pub(crate) fn line(text: &str) -> String {
    shown(text, false)
}

/// Many lines: `\n` and tabs stay.
pub(crate) fn lines(text: &str) -> String {
    shown(text, true)
}

fn shown(text: &str, many: bool) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut marks = 0;
    for character in text.chars() {
        marks = if is_mark(character) { marks + 1 } else { 0 };
        if many && matches!(character, '\n' | '\t') {
            shown.push(character);
        } else if is_unseen(character) || marks > MARKS_MAX {
            shown.push_str(&format!("⟨U+{:04X}⟩", u32::from(character)));
        } else {
            shown.push(character);
        }
    }
    shown
}

/// Controls, format characters, blanks that are no plain space, and what stands
/// for nothing at all.
fn is_unseen(character: char) -> bool {
    character.is_control()
        || character.is_whitespace() && character != ' '
        || matches!(
            u32::from(character),
            0xAD | 0x034F
                | 0x0600..=0x0605
                | 0x061C
                | 0x06DD
                | 0x070F
                | 0x08E2
                | 0x115F..=0x1160
                | 0x17B4..=0x17B5
                | 0x180B..=0x180F
                | 0x200B..=0x200F
                | 0x2028..=0x202E
                | 0x2060..=0x206F
                | 0x2800
                | 0x3164
                | 0xD800..=0xF8FF
                | 0xFE00..=0xFE0F
                | 0xFEFF
                | 0xFFA0
                | 0xFFF0..=0xFFFB
                | 0xFFFE..=0xFFFF
                | 0x1BCA0..=0x1BCA3
                | 0x1D173..=0x1D17A
                | 0xE0000..=0x10FFFF
        )
}

fn is_mark(character: char) -> bool {
    matches!(
        u32::from(character),
        0x0300..=0x036F
            | 0x0483..=0x0489
            | 0x0591..=0x05BD
            | 0x0610..=0x061A
            | 0x064B..=0x065F
            | 0x0E31..=0x0E3A
            | 0x0E47..=0x0E4E
            | 0x1AB0..=0x1AFF
            | 0x1DC0..=0x1DFF
            | 0x20D0..=0x20FF
            | 0xFE20..=0xFE2F
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b090_what_cannot_be_seen_is_written_out() {
        let rows = [
            ("plain", "GET /orders", "GET /orders"),
            ("letters of other scripts", "Zoë 東京 Ж", "Zoë 東京 Ж"),
            ("an emoji", "\u{1f600}", "\u{1f600}"),
            ("nul", "a\0b", "a⟨U+0000⟩b"),
            ("escape", "\u{1b}[2J", "⟨U+001B⟩[2J"),
            ("carriage return", "a\rb", "a⟨U+000D⟩b"),
            ("line break", "a\nb", "a⟨U+000A⟩b"),
            ("tab", "a\tb", "a⟨U+0009⟩b"),
            ("delete", "a\u{7f}", "a⟨U+007F⟩"),
            ("C1 control", "\u{9b}31m", "⟨U+009B⟩31m"),
            ("right-to-left override", "a\u{202e}b", "a⟨U+202E⟩b"),
            ("isolates", "\u{2066}a\u{2069}", "⟨U+2066⟩a⟨U+2069⟩"),
            ("right-to-left mark", "a\u{200f}", "a⟨U+200F⟩"),
            ("Arabic letter mark", "\u{61c}", "⟨U+061C⟩"),
            ("zero-width space", "pay\u{200b}pal", "pay⟨U+200B⟩pal"),
            ("zero-width joiner", "a\u{200d}b", "a⟨U+200D⟩b"),
            ("word joiner", "\u{2060}", "⟨U+2060⟩"),
            ("byte order mark", "\u{feff}a", "⟨U+FEFF⟩a"),
            ("soft hyphen", "a\u{ad}b", "a⟨U+00AD⟩b"),
            ("no-break space", "a\u{a0}b", "a⟨U+00A0⟩b"),
            ("wide space", "a\u{3000}b", "a⟨U+3000⟩b"),
            ("line separator", "a\u{2028}b", "a⟨U+2028⟩b"),
            ("Hangul filler", "\u{3164}", "⟨U+3164⟩"),
            ("Braille blank", "\u{2800}", "⟨U+2800⟩"),
            ("variation selector", "a\u{fe0f}", "a⟨U+FE0F⟩"),
            ("tag characters", "\u{e0041}", "⟨U+E0041⟩"),
            ("private use", "\u{e000}", "⟨U+E000⟩"),
            ("an accent", "e\u{301}", "e\u{301}"),
            ("a pile of accents", "e\u{301}\u{301}\u{301}", "e\u{301}\u{301}⟨U+0301⟩"),
        ];
        for (name, text, want) in rows {
            assert_eq!(line(text), want, "{name}");
        }
    }

    #[test]
    fn b090_many_lines_keep_their_breaks() {
        assert_eq!(lines("a\n\tb\r\u{202e}"), "a\n\tb⟨U+000D⟩⟨U+202E⟩");
    }
}
