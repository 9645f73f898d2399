//! What a place in a text may mean to whoever decodes it: each escape that JSON,
//! JavaScript, URLs and HTML write a byte with, in any mixture and escaped again
//! up to [`DEPTH`] times. Every reading is given, not the likeliest: a secret is
//! hidden when it stands there under any of them. Finding secrets is `redact`'s.

/// How often what is escaped may have been escaped again: JSON in a string of
/// JSON that holds a URL is three.
pub(super) const DEPTH: usize = 3;

/// Most readings of one place. Real encoders make two or three; what a hostile
/// text has beyond is not read.
const READINGS: usize = 16;

/// Digits an entity may have, leading zeros included, and the letters of a name.
const DIGITS: usize = 8;
const NAME: usize = 24;

/// One byte as it may be meant, and where what comes after it begins.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reading {
    pub(crate) byte: u8,
    pub(crate) end: usize,
}

/// All readings of one place, the plain one first.
pub(crate) struct Readings {
    list: [Reading; READINGS],
    length: usize,
    /// The text ends in the middle of one.
    pub(super) short: bool,
    /// Places looked at, which is what the reading cost.
    pub(crate) looks: usize,
}

/// Whether a byte may begin an escape.
pub(super) fn leads(byte: u8) -> bool {
    matches!(byte, b'\\' | b'%' | b'&' | b'+')
}

/// Every reading of what stands at `at`, which must be inside the text.
pub(crate) fn readings(text: &[u8], at: usize) -> Readings {
    read(text, at, DEPTH)
}

impl Readings {
    pub(crate) fn iter(&self) -> impl Iterator<Item = Reading> + '_ {
        self.list[..self.length].iter().copied()
    }

    fn add(&mut self, byte: u8, end: usize) {
        let reading = Reading { byte, end };
        if self.length < READINGS && !self.list[..self.length].contains(&reading) {
            self.list[self.length] = reading;
            self.length += 1;
        }
    }

    /// Takes over what a reading further in says of the text and of its cost.
    fn and(&mut self, within: &Self) {
        self.short |= within.short;
        self.looks += within.looks;
    }

    /// A character's number, where the character is one byte.
    fn add_number(&mut self, number: u32, end: usize) {
        if let Some(byte) = u8::try_from(number).ok().filter(u8::is_ascii) {
            self.add(byte, end);
        }
    }
}

fn read(text: &[u8], at: usize, depth: usize) -> Readings {
    let list = [Reading { byte: 0, end: 0 }; READINGS];
    let mut found = Readings { list, length: 0, short: false, looks: 1 };
    let Some(byte) = text.get(at) else {
        found.short = true;
        return found;
    };
    found.add(*byte, at + 1);
    // What an escape stands for may begin another.
    let (mut done, mut level) = (0, 0);
    while done < found.length && level < depth {
        let before = found.length;
        while done < before {
            let Reading { byte, end } = found.list[done];
            done += 1;
            if leads(byte) {
                let within = Within { text, depth: depth - 1 };
                within.escape(byte, end, &mut found);
            }
        }
        level += 1;
    }
    found
}

/// The inside of an escape, whose own letters may be escaped less often.
struct Within<'a> {
    text: &'a [u8],
    depth: usize,
}

impl Within<'_> {
    fn escape(&self, lead: u8, at: usize, found: &mut Readings) {
        match lead {
            b'\\' => self.backslash(at, found),
            b'%' => self.percent(at, found),
            b'&' => self.entity(at, found),
            b'+' => found.add(b' ', at),
            _ => {}
        }
    }

    /// `\=`, `\u003d`, `\u{3d}`, `\x3d`, `\075`, `\t`.
    fn backslash(&self, at: usize, found: &mut Readings) {
        match self.text.get(at) {
            Some(byte) if self.plain(*byte) => {
                found.looks += 1;
                self.escaped(Reading { byte: *byte, end: at + 1 }, at, found);
            }
            _ => {
                let next = read(self.text, at, self.depth);
                found.and(&next);
                next.iter().for_each(|reading| self.escaped(reading, at, found));
            }
        }
    }

    /// What comes after a backslash at `at`, read one way.
    fn escaped(&self, Reading { byte, end }: Reading, at: usize, found: &mut Readings) {
        found.add(byte, end);
        match byte {
            b'u' => {
                self.number(end, 16, 4, 4, found);
                if let Some(digits) = self.any(end, b"{", found)
                    && let Some((number, after)) = self.digits(digits, 16, 1, DIGITS, found)
                    && let Some(end) = self.any(after, b"}", found)
                {
                    found.add_number(number, end);
                }
            }
            b'x' => self.number(end, 16, 2, 2, found),
            b'0'..=b'7' => self.number(at, 8, 1, 3, found),
            b't' => found.add(b'\t', end),
            b'n' => found.add(b'\n', end),
            b'r' => found.add(b'\r', end),
            b'b' => found.add(8, end),
            b'f' => found.add(12, end),
            _ => {}
        }
    }

    /// `%3d` and `%u003d`.
    fn percent(&self, at: usize, found: &mut Readings) {
        if let Some((number, end)) = self.digits(at, 16, 2, 2, found)
            && let Ok(byte) = u8::try_from(number)
        {
            found.add(byte, end);
        }
        if let Some(digits) = self.any(at, b"uU", found) {
            self.number(digits, 16, 4, 4, found);
        }
    }

    /// `&#61;`, `&#x3d;`, `&equals;`; the old ones without the semicolon too.
    fn entity(&self, at: usize, found: &mut Readings) {
        if let Some(digits) = self.any(at, b"#", found) {
            let (start, radix) = match self.any(digits, b"xX", found) {
                Some(start) => (start, 16),
                None => (digits, 10),
            };
            if let Some((number, end)) = self.digits(start, radix, 1, DIGITS, found) {
                let end = self.any(end, b";", found).unwrap_or(end);
                found.add_number(number, end);
            }
            return;
        }
        let (mut name, mut length, mut at) = ([0; NAME], 0, at);
        while length < NAME {
            let letter = |reading: Reading| {
                let fits = reading.byte == b';' || reading.byte.is_ascii_alphanumeric();
                fits.then_some(reading)
            };
            let Some(Reading { byte, end }) = self.first(at, found, letter) else { return };
            if byte == b';' {
                if let Some(byte) = named(&name[..length]) {
                    found.add(byte, end);
                }
                return;
            }
            (name[length], length, at) = (byte, length + 1, end);
            if let Some(byte) = unended(&name[..length]) {
                found.add(byte, at);
            }
        }
    }

    fn number(&self, at: usize, radix: u32, least: usize, most: usize, found: &mut Readings) {
        if let Some((number, end)) = self.digits(at, radix, least, most, found) {
            found.add_number(number, end);
        }
    }

    /// As many digits as stand there.
    fn digits(
        &self,
        at: usize,
        radix: u32,
        least: usize,
        most: usize,
        found: &mut Readings,
    ) -> Option<(u32, usize)> {
        let (mut number, mut count, mut at) = (0_u32, 0, at);
        while count < most {
            let digit = |it: Reading| Some((char::from(it.byte).to_digit(radix)?, it.end));
            let Some((digit, end)) = self.first(at, found, digit) else { break };
            number = number.saturating_mul(radix).saturating_add(digit);
            (count, at) = (count + 1, end);
        }
        (count >= least).then_some((number, at))
    }

    fn any(&self, at: usize, wanted: &[u8], found: &mut Readings) -> Option<usize> {
        self.first(at, found, |it| wanted.contains(&it.byte).then_some(it.end))
    }

    /// The first reading of a place that fits. Most places have one only, and
    /// are read without a list.
    fn first<T>(
        &self,
        at: usize,
        found: &mut Readings,
        fits: impl Fn(Reading) -> Option<T>,
    ) -> Option<T> {
        match self.text.get(at) {
            Some(byte) if self.plain(*byte) => {
                found.looks += 1;
                fits(Reading { byte: *byte, end: at + 1 })
            }
            _ => {
                let next = read(self.text, at, self.depth);
                found.and(&next);
                next.iter().find_map(fits)
            }
        }
    }

    fn plain(&self, byte: u8) -> bool {
        self.depth == 0 || !leads(byte)
    }
}

/// HTML's names of visible ASCII.
fn named(name: &[u8]) -> Option<u8> {
    Some(match name {
        b"Tab" => b'\t',
        b"NewLine" => b'\n',
        b"excl" => b'!',
        b"quot" | b"QUOT" => b'"',
        b"num" => b'#',
        b"dollar" => b'$',
        b"percnt" => b'%',
        b"amp" | b"AMP" => b'&',
        b"apos" => b'\'',
        b"lpar" => b'(',
        b"rpar" => b')',
        b"ast" | b"midast" => b'*',
        b"plus" => b'+',
        b"comma" => b',',
        b"period" => b'.',
        b"sol" => b'/',
        b"colon" => b':',
        b"semi" => b';',
        b"lt" | b"LT" => b'<',
        b"equals" => b'=',
        b"gt" | b"GT" => b'>',
        b"quest" => b'?',
        b"commat" => b'@',
        b"lsqb" | b"lbrack" => b'[',
        b"bsol" => b'\\',
        b"rsqb" | b"rbrack" => b']',
        b"Hat" => b'^',
        b"lowbar" | b"UnderBar" => b'_',
        b"grave" | b"DiacriticalGrave" => b'`',
        b"lcub" | b"lbrace" => b'{',
        b"verbar" | b"vert" | b"VerticalLine" => b'|',
        b"rcub" | b"rbrace" => b'}',
        _ => return None,
    })
}

/// Those a browser reads without their semicolon.
fn unended(name: &[u8]) -> Option<u8> {
    matches!(name, b"quot" | b"QUOT" | b"amp" | b"AMP" | b"lt" | b"LT" | b"gt" | b"GT")
        .then(|| named(name))
        .flatten()
}
