//! The one pass over a zygote's own memory map: what a fork must get of it, and
//! what it is to get without a fault for each page. Needs `/proc`, so it runs
//! before the files are closed.
#![allow(unsafe_code)]

use std::io::{Error, Result};

/// Advice of Linux 6.13, for mappings of files of 6.15.
const GUARD_INSTALL: libc::c_int = 102;
const GUARD_REMOVE: libc::c_int = 103;

/// One line of the map.
struct Map {
    start: usize,
    length: usize,
    /// Machine code of a file, private to this process.
    is_code: bool,
}

/// V8 marks its pages so that a fork does not get them: undone for every map of
/// this process. And the program's machine code is made a mapping whose page
/// tables a fork copies; a child would else fault it in anew, a third of all the
/// faults of a run. The process has one thread.
pub(crate) fn prepare_for_forks() -> Result<()> {
    let text = std::fs::read_to_string("/proc/self/maps")?;
    let maps: Vec<Map> = text.lines().filter_map(read).collect();
    for map in &maps {
        // Special maps of the kernel's own (vvar) refuse; they are copied anyway.
        copy_on_fork(map);
    }
    let here = guard_once as *const () as usize;
    match maps.iter().find(|map| map.is_code && here.wrapping_sub(map.start) < map.length) {
        Some(code) => guard_once(code),
        None => Ok(()),
    }
}

/// `start-end perms offset device inode path`.
fn read(line: &str) -> Option<Map> {
    let mut words = line.split_ascii_whitespace();
    let (start, end) = words.next()?.split_once('-')?;
    let (start, end) =
        (usize::from_str_radix(start, 16).ok()?, usize::from_str_radix(end, 16).ok()?);
    let is_code = words.next()? == "r-xp" && words.nth(2)? != "0";
    Some(Map { start, length: end.saturating_sub(start), is_code })
}

/// Gives the children of this process a copy of a range that was marked
/// MADV_DONTFORK.
fn copy_on_fork(map: &Map) -> bool {
    // SAFETY: changes only what a later fork does with the range; reads and
    // writes none of it. A range that is not ours is an error.
    unsafe { libc::madvise(map.start as *mut libc::c_void, map.length, libc::MADV_DOFORK) == 0 }
}

/// Puts a guard on one page of the program's code and takes it off again. Linux
/// copies the page tables of a file's mapping only when something was done to it
/// by hand, and this changes neither bytes nor protection.
fn guard_once(code: &Map) -> Result<()> {
    // SAFETY: asks for a number.
    let size = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(0).max(1);
    let pages = code.length / size;
    // A page that holds none of what runs meanwhile.
    let page_of = |function: usize| function.wrapping_sub(code.start) / size;
    let busy = [guard_once as *const () as usize, libc::madvise as *const () as usize].map(page_of);
    let idle = |page: &usize| *page < pages && busy.iter().all(|busy| busy.abs_diff(*page) > 1);
    let Some(page) = [0, pages / 2, pages.saturating_sub(1)].into_iter().find(idle) else {
        return Ok(());
    };
    let start = (code.start + page * size) as *mut libc::c_void;
    // SAFETY: a whole page of a mapping of ours that nothing executes now: this
    // function and what it calls are elsewhere, and there is no other thread.
    // Without the guard the page comes from the file again, as it was.
    unsafe {
        if libc::madvise(start, size, GUARD_INSTALL) != 0 {
            // A kernel before 6.15: forks are slower, nothing else.
            return Ok(());
        }
        match libc::madvise(start, size, GUARD_REMOVE) {
            0 => Ok(()),
            _ => Err(Error::last_os_error()),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn code_of_a_file_is_told_from_other_maps() {
        for (line, is_code) in [
            ("55d0-66d0 r-xp 00001000 fe:00 1234   /usr/bin/cambium", true),
            ("55d0-66d0 r--p 00001000 fe:00 1234   /usr/bin/cambium", false),
            ("55d0-66d0 r-xs 00001000 fe:00 1234   /usr/bin/cambium", false),
            ("55d0-66d0 r-xp 00000000 00:00 0      [vdso]", false),
        ] {
            let map = read(line).unwrap();
            assert_eq!((map.start, map.length, map.is_code), (0x55d0, 0x1100, is_code), "{line}");
        }
        assert!(read("").is_none() && read("x-y r-xp 0 0 0").is_none());
    }
}
