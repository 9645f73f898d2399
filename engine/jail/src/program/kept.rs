//! What a program changed in its working directory, on its way back: plain files
//! only, a bounded number of bounded size, those it was given ahead of those it
//! made. Written by the namespace's first process when nothing else is alive in
//! it, read by the engine as foreign.

use super::Program;
use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Longest path below the working directory, bytes.
const PATH_BYTES: usize = 512;
/// Deepest folder.
const DEPTH: usize = 16;
/// Entries looked at: many more than may be kept, and an end.
const ENTRIES: usize = 16 * 1024;
/// Before each file: the length of its path and of its bytes.
const HEAD_BYTES: usize = 8;
/// Ends the list; then one byte, 1 when something stayed behind.
const END: u32 = u32::MAX;
/// Stands for the length of a given file that is there no more.
const GONE: u32 = u32::MAX;
/// Stands for the length of a given file that had no place.
const UNPLACED: u32 = u32::MAX - 1;

/// What was brought back.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Kept {
    /// Path below the working directory, and bytes, by path: what is new, and
    /// what is not as it was given. Any bytes may stand in either.
    pub files: Vec<(PathBuf, Vec<u8>)>,
    /// Files it was given that are there no more.
    pub gone: Vec<PathBuf>,
    /// Files it was to be given that had no place beside the others.
    pub unplaced: Vec<PathBuf>,
    /// There was more: too many, too long, or no plain files.
    pub cut: bool,
}

/// Most bytes that [`write`] writes for this program.
pub(super) fn most_bytes(program: &Program) -> usize {
    let (limits, seeds) = (&program.limits, program.seeds.len());
    limits.kept_bytes + (limits.kept_files + seeds) * (PATH_BYTES + HEAD_BYTES) + HEAD_BYTES
}

/// Writes what became of the seeds and what is new. A reader who is gone wants
/// nothing of it.
pub(super) fn write(program: &Program, unplaced: &[PathBuf], out: OwnedFd) {
    let (scratch, limits) = (&program.scratch, &program.limits);
    let mut walk = Walk {
        files: Vec::new(),
        gone: Vec::new(),
        seen: HashSet::new(),
        entries: 0,
        cut: false,
        room: (limits.kept_files, limits.kept_bytes),
    };
    // Ahead of what is new, which may be litter without an end.
    for (path, before) in program.seeds.iter().filter(|(path, _)| !unplaced.contains(path)) {
        walk.seed(scratch, path, before);
    }
    walk.folder(scratch, Path::new(""), 0);
    let mut out = File::from(out);
    let mut say = |path: &Path, length: u32, bytes: &[u8]| {
        let path = path.as_os_str().as_bytes();
        let lengths = [path.len() as u32, length].map(u32::to_le_bytes).concat();
        [lengths.as_slice(), path, bytes].iter().try_for_each(|part| out.write_all(part))
    };
    let short = |path: &&PathBuf| path.as_os_str().len() <= PATH_BYTES;
    let said = walk
        .files
        .iter()
        .try_for_each(|(path, bytes)| say(path, bytes.len() as u32, bytes))
        .and_then(|()| walk.gone.iter().filter(short).try_for_each(|path| say(path, GONE, &[])))
        .and_then(|()| unplaced.iter().filter(short).try_for_each(|path| say(path, UNPLACED, &[])));
    if said.is_err() {
        return;
    }
    let _ = out.write_all(&END.to_le_bytes());
    let _ = out.write_all(&[u8::from(walk.cut)]);
}

struct Walk {
    files: Vec<(PathBuf, Vec<u8>)>,
    gone: Vec<PathBuf>,
    /// Seeds that are still files: looked at already.
    seen: HashSet<PathBuf>,
    entries: usize,
    cut: bool,
    /// Files and bytes still allowed.
    room: (usize, usize),
}

impl Walk {
    fn seed(&mut self, scratch: &Path, path: &Path, before: &[u8]) {
        let mut at = scratch.to_owned();
        let mut parts = path.components().peekable();
        while let Some(part) = parts.next() {
            at.push(part);
            let last = parts.peek().is_none();
            // Of the entry itself: a link is never followed.
            match fs::symlink_metadata(&at).map(|there| there.file_type()) {
                Ok(kind) if !last && kind.is_dir() => {}
                Ok(kind) if last && kind.is_file() => {
                    self.seen.insert(path.to_owned());
                    return self.file(&at, path.to_owned(), Some(before));
                }
                // Something that cannot be brought back stands for it: it stays
                // as it was, and the walk says that something was left behind.
                Ok(kind) if last && !kind.is_dir() => return,
                Ok(_) => return self.gone.push(path.to_owned()),
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    return self.gone.push(path.to_owned());
                }
                Err(_) => {
                    self.cut = true;
                    return;
                }
            }
        }
    }

    fn folder(&mut self, at: &Path, below: &Path, depth: usize) {
        let Ok(entries) = fs::read_dir(at) else {
            self.cut = true;
            return;
        };
        for entry in entries {
            self.entries += 1;
            let Some(entry) = entry.ok().filter(|_| self.entries <= ENTRIES) else {
                self.cut = true;
                return;
            };
            let path = below.join(entry.file_name());
            // Of the entry itself: a link is never followed.
            let kind = entry.file_type();
            match kind {
                Ok(kind) if kind.is_dir() && depth < DEPTH => {
                    self.folder(&entry.path(), &path, depth + 1);
                }
                Ok(kind) if kind.is_file() => {
                    if !self.seen.contains(&path) {
                        self.file(&entry.path(), path, None);
                    }
                }
                Ok(_) | Err(_) => self.cut = true,
            }
        }
    }

    /// Takes a file, unless it is as it was before.
    fn file(&mut self, at: &Path, path: PathBuf, before: Option<&[u8]>) {
        let (files, bytes) = self.room;
        let most = bytes.max(before.map_or(0, <[u8]>::len));
        let mut content = Vec::new();
        let read = File::open(at)
            .and_then(|file| file.take(most as u64 + 1).read_to_end(&mut content))
            .is_ok();
        if read && before == Some(content.as_slice()) {
            return;
        }
        if !read || files == 0 || content.len() > bytes || path.as_os_str().len() > PATH_BYTES {
            self.cut = true;
            return;
        }
        self.room = (files - 1, bytes - content.len());
        self.files.push((path, content));
    }
}

/// Reads what [`write`] wrote. Nothing at all is a program that was to keep
/// nothing.
pub(super) fn read(mut bytes: &[u8], program: &Program) -> Result<Kept, &'static str> {
    const SHORT: &str = "what it left is cut";
    let mut kept = Kept::default();
    if bytes.is_empty() {
        return Ok(kept);
    }
    loop {
        let path = number(&mut bytes).ok_or(SHORT)?;
        if path == END {
            kept.cut = bytes.first() == Some(&1);
            kept.files.sort();
            return Ok(kept);
        }
        let length = number(&mut bytes).ok_or(SHORT)?;
        let (path, rest) = bytes.split_at_checked(path as usize).ok_or(SHORT)?;
        let path = PathBuf::from(std::ffi::OsStr::from_bytes(path));
        if length == GONE || length == UNPLACED {
            bytes = rest;
            if !program.seeds.iter().any(|(seed, _)| *seed == path) {
                return Err("it names what it was not given");
            }
            let list = if length == GONE { &mut kept.gone } else { &mut kept.unplaced };
            list.push(path);
            continue;
        }
        let (content, rest) = rest.split_at_checked(length as usize).ok_or(SHORT)?;
        bytes = rest;
        if kept.files.len() == program.limits.kept_files {
            return Err("it left more than it may");
        }
        kept.files.push((path, content.to_vec()));
    }
}

fn number(bytes: &mut &[u8]) -> Option<u32> {
    let (number, rest) = bytes.split_first_chunk::<4>()?;
    *bytes = rest;
    Some(u32::from_le_bytes(*number))
}
