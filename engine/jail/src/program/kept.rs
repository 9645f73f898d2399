//! What a program left in its working directory, on its way back: plain files
//! only, a bounded number of bounded size. Written by the namespace's first
//! process when nothing else is alive in it, read by the engine as foreign.

use super::ProgramLimits;
use std::fs::{self, File};
use std::io::{Read, Write};
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

/// What was brought back.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Kept {
    /// Path below the working directory, and bytes, by path. Any bytes may
    /// stand in either.
    pub files: Vec<(PathBuf, Vec<u8>)>,
    /// There was more: too many, too long, or no plain files.
    pub cut: bool,
}

/// Most bytes that [`write`] writes under these limits.
pub(super) fn most_bytes(limits: &ProgramLimits) -> usize {
    limits.kept_bytes + limits.kept_files * (PATH_BYTES + HEAD_BYTES) + HEAD_BYTES
}

/// Writes what is there. A reader who is gone wants nothing of it.
pub(super) fn write(scratch: &Path, limits: &ProgramLimits, out: OwnedFd) {
    let mut walk = Walk {
        files: Vec::new(),
        entries: 0,
        cut: false,
        room: (limits.kept_files, limits.kept_bytes),
    };
    walk.folder(scratch, Path::new(""), 0);
    let mut out = File::from(out);
    for (path, bytes) in &walk.files {
        let path = path.as_os_str().as_bytes();
        let lengths = [path.len() as u32, bytes.len() as u32].map(u32::to_le_bytes).concat();
        let wrote =
            [lengths.as_slice(), path, bytes].iter().try_for_each(|part| out.write_all(part));
        if wrote.is_err() {
            return;
        }
    }
    let _ = out.write_all(&END.to_le_bytes());
    let _ = out.write_all(&[u8::from(walk.cut)]);
}

struct Walk {
    files: Vec<(PathBuf, Vec<u8>)>,
    entries: usize,
    cut: bool,
    /// Files and bytes still allowed.
    room: (usize, usize),
}

impl Walk {
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
                Ok(kind) if kind.is_file() => self.file(&entry.path(), path),
                Ok(_) | Err(_) => self.cut = true,
            }
        }
    }

    fn file(&mut self, at: &Path, path: PathBuf) {
        let (files, bytes) = self.room;
        let mut content = Vec::new();
        let read = File::open(at)
            .and_then(|file| file.take(bytes as u64 + 1).read_to_end(&mut content))
            .is_ok();
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
pub(super) fn read(mut bytes: &[u8], limits: &ProgramLimits) -> Result<Kept, &'static str> {
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
        let (content, rest) = rest.split_at_checked(length as usize).ok_or(SHORT)?;
        bytes = rest;
        if kept.files.len() == limits.kept_files {
            return Err("it left more than it may");
        }
        let path = PathBuf::from(std::ffi::OsStr::from_bytes(path));
        kept.files.push((path, content.to_vec()));
    }
}

fn number(bytes: &mut &[u8]) -> Option<u32> {
    let (number, rest) = bytes.split_first_chunk::<4>()?;
    *bytes = rest;
    Some(u32::from_le_bytes(*number))
}
