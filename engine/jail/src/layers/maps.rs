//! The one pass over a zygote's own memory map: what a fork must get of it.
//! Needs `/proc`, so it runs before the files are closed.
#![allow(unsafe_code)]

use std::io::Result;

/// One line of the map.
struct Map {
    start: usize,
    length: usize,
}

/// V8 marks its pages so that a fork does not get them: undone for every map of
/// this process. The process has one thread.
pub(crate) fn prepare_for_forks() -> Result<()> {
    let text = std::fs::read_to_string("/proc/self/maps")?;
    for map in text.lines().filter_map(read) {
        // Special maps of the kernel's own (vvar) refuse; they are copied anyway.
        copy_on_fork(&map);
    }
    Ok(())
}

/// `start-end perms offset device inode path`.
fn read(line: &str) -> Option<Map> {
    let (start, end) = line.split_ascii_whitespace().next()?.split_once('-')?;
    let (start, end) =
        (usize::from_str_radix(start, 16).ok()?, usize::from_str_radix(end, 16).ok()?);
    Some(Map { start, length: end.saturating_sub(start) })
}

/// Gives the children of this process a copy of a range that was marked
/// MADV_DONTFORK.
fn copy_on_fork(map: &Map) -> bool {
    // SAFETY: changes only what a later fork does with the range; reads and
    // writes none of it. A range that is not ours is an error.
    unsafe { libc::madvise(map.start as *mut libc::c_void, map.length, libc::MADV_DOFORK) == 0 }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_map_is_a_range() {
        let map = read("55d0-66d0 r-xp 00001000 fe:00 1234   /usr/bin/cambium").unwrap();
        assert_eq!((map.start, map.length), (0x55d0, 0x1100));
        assert!(read("").is_none() && read("x-y r-xp 0 0 0").is_none());
    }
}
