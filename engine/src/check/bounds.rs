//! What is refused before a parser sees it, and how much stack the rest needs.
//! Parser, scope analysis and printer recurse with the nesting of the source,
//! so a source must not be able to run them off the end of a stack: that would
//! end the whole process, not one check.

/// Largest source, in bytes.
pub(super) const SOURCE_MAX: usize = 256 * 1024;
/// Deepest brackets a person could still read; kept well under what the stack
/// below is made for.
const NESTING_MAX: usize = 200;
/// Most places in a source that could nest. Real modules of the largest size
/// stay under it; it bounds the stack at 4 MiB + 60,000 × 12 KiB of address
/// space, of which only what is used gets memory.
const NODES_MAX: usize = 60_000;
/// Most `<`: each may open type arguments, so the parser reads ahead from every
/// one, and a chain of them takes time that grows with its square.
const ANGLES_MAX: usize = 1_500;
/// Stack one nesting step may take, measured at its worst (an unoptimised
/// build, a parenthesis) and doubled.
const STACK_PER_NODE: usize = 12 * 1024;
/// Stack for everything that does not depend on the source.
const STACK_BASE: usize = 4 * 1024 * 1024;

/// Why a source is refused unread.
pub(super) struct Refused {
    pub(super) offset: u32,
    pub(super) code: &'static str,
    pub(super) message: String,
}

/// The stack the check of this source needs, in bytes.
pub(super) fn stack(source: &str) -> Result<usize, Refused> {
    if source.len() > SOURCE_MAX {
        return Err(Refused {
            offset: 0,
            code: "source_too_large",
            message: format!(
                "the module is {} bytes, more than {SOURCE_MAX}; split it into smaller tools",
                source.len()
            ),
        });
    }
    let nodes = nodes(source);
    if nodes > NODES_MAX {
        return Err(Refused {
            offset: 0,
            code: "source_too_dense",
            message: format!(
                "the module has about {nodes} tokens, more than {NODES_MAX}; split it into smaller tools"
            ),
        });
    }
    let angles = source.bytes().filter(|byte| *byte == b'<').count();
    if angles > ANGLES_MAX {
        return Err(Refused {
            offset: 0,
            code: "source_too_dense",
            message: format!(
                "the module holds `<` {angles} times, more than {ANGLES_MAX}; split it"
            ),
        });
    }
    if let Some(offset) = too_deep(source) {
        return Err(Refused {
            offset: u32::try_from(offset).unwrap_or(u32::MAX),
            code: "nesting_too_deep",
            message: format!("brackets nest deeper than {NESTING_MAX} here; flatten the code"),
        });
    }
    Ok(STACK_BASE + nodes * STACK_PER_NODE)
}

/// An upper bound on how many nodes can nest, without telling code from text:
/// every token a parser can see is a run of word characters or begins with a
/// mark, so counting both over the raw bytes never counts too few. A lexer here
/// could be fooled (a slash may divide or open a regular expression) and would
/// then count too few.
fn nodes(source: &str) -> usize {
    let mut nodes = 0;
    let mut in_word = false;
    for byte in source.bytes() {
        let word = byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$') || byte >= 0x80;
        if word && !in_word || !word && !byte.is_ascii_whitespace() {
            nodes += 1;
        }
        in_word = word;
    }
    nodes
}

/// Where brackets nest too deep. Reads strings and comments as code, so it can
/// miss (the stack is made for that) and a string full of brackets can trip it.
fn too_deep(source: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, byte) in source.bytes().enumerate() {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > NESTING_MAX {
            return Some(at);
        }
    }
    None
}
