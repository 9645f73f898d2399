//! The worker's own side of a job: reads it, writes console lines and the one
//! ending. What runs in between is the guest's.

use super::{ENDING, Ended, Ending, JOB, JOB_LIMITS, JOB_PIECE, JobHead, LOG, PIECE, RESULT_PIECE};
use crate::frames::{self, FrameReader};
use bytes::Bytes;
use std::cell::RefCell;
use std::io::{Error, ErrorKind, Write};
use std::os::unix::net::UnixStream as StdStream;
use tokio::net::unix::OwnedReadHalf;

/// A whole job, as a worker has it.
#[derive(Debug)]
pub struct Received {
    /// What came first.
    pub head: JobHead,
    /// What runs.
    pub code: Vec<u8>,
    /// JSON text.
    pub input: String,
    /// What may be imported: name and text of each.
    pub modules: Vec<(String, String)>,
}

/// Reads the whole job.
pub async fn receive(reader: OwnedReadHalf) -> Result<Received, String> {
    let mut reader = FrameReader::new(reader, JOB_LIMITS);
    let mut next = async || match reader.next().await {
        Ok(Some(frame)) => Ok(frame),
        Ok(None) => Err("no job".to_owned()),
        Err(error) => Err(error.to_string()),
    };
    let first = next().await?;
    if first.kind != JOB {
        return Err("not a job".to_owned());
    }
    let head: JobHead =
        serde_json::from_slice(&first.payload).map_err(|error| error.to_string())?;
    let modules: usize = head.modules.iter().map(|(_, bytes)| bytes).sum();
    let whole = head.code_bytes + head.input_bytes + modules;
    let mut bytes = Vec::with_capacity(whole);
    while bytes.len() < whole {
        let piece = next().await?;
        if piece.kind != JOB_PIECE || piece.payload.is_empty() {
            return Err("not a piece of a job".to_owned());
        }
        bytes.extend_from_slice(&piece.payload);
    }
    if bytes.len() > whole {
        return Err("more than the job has".to_owned());
    }
    let mut rest = bytes.split_off(head.code_bytes);
    let code = bytes;
    let mut next = |length: usize| {
        let after = rest.split_off(length.min(rest.len()));
        let text = std::mem::replace(&mut rest, after);
        String::from_utf8(text).map_err(|error| error.to_string())
    };
    let input = next(head.input_bytes)?;
    let mut modules = Vec::with_capacity(head.modules.len());
    for (name, length) in &head.modules {
        modules.push((name.clone(), next(*length)?));
    }
    Ok(Received { head, code, input, modules })
}

/// Ends this process as it is: what a library would undo at an ordinary exit may
/// take a call that a locked worker is killed for.
pub fn leave(code: i32) -> ! {
    crate::sys::exit_now(code)
}

/// The job socket, written at once as far as it takes it: what a tool logged
/// before it was killed must be out.
#[derive(Debug)]
pub struct Out {
    socket: StdStream,
    backlog: RefCell<Vec<u8>>,
}

impl Out {
    /// Over the job socket, which does not block once tokio has it.
    pub fn new(socket: StdStream) -> Self {
        Self { socket, backlog: RefCell::default() }
    }

    /// Says that the worker is locked in and takes its job.
    pub fn ready(&self) -> Result<(), Error> {
        (&self.socket).write_all(&[1, 0, 0, 0, frames::READY])
    }

    fn frame(&self, kind: u8, parts: &[&[u8]]) {
        let size: usize = parts.iter().map(|part| part.len()).sum();
        let mut backlog = self.backlog.borrow_mut();
        backlog.extend_from_slice(&u32::try_from(size + 1).unwrap_or(1).to_le_bytes());
        backlog.push(kind);
        parts.iter().for_each(|part| backlog.extend_from_slice(part));
    }

    /// One console line, and how much was left out before it.
    pub fn log(&self, line: &str, dropped: u64) {
        let dropped = u32::try_from(dropped).unwrap_or(u32::MAX);
        self.frame(LOG, &[&dropped.to_le_bytes(), line.as_bytes()]);
        self.flush();
    }

    /// How the run ended; of a stack, only frames that name the specifier.
    pub fn end(&self, (ending, bytes): Ended, specifier: &str) {
        let ending = match ending {
            Ending::Threw { message, stack } => {
                Ending::Threw { message, stack: own_frames(&stack, specifier) }
            }
            other => other,
        };
        let head = serde_json::to_vec(&ending).unwrap_or_default();
        self.frame(ENDING, &[&head]);
        for piece in pieces(&bytes) {
            self.frame(RESULT_PIECE, &[piece]);
        }
        self.flush();
    }

    /// Whether everything is written.
    pub fn is_flushed(&self) -> bool {
        self.backlog.borrow().is_empty()
    }

    /// Writes what the socket takes.
    pub fn flush(&self) {
        let mut backlog = self.backlog.borrow_mut();
        let mut written = 0;
        while written < backlog.len() {
            match (&self.socket).write(&backlog[written..]) {
                Ok(0) => break,
                Ok(count) => written += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                // The parent is gone; so is this process in a moment.
                Err(_) => written = backlog.len(),
            }
        }
        backlog.drain(..written);
    }
}

fn pieces(bytes: &Bytes) -> impl Iterator<Item = &[u8]> {
    bytes.chunks(PIECE)
}

/// The frames of a stack that lie in the module.
fn own_frames(stack: &str, specifier: &str) -> String {
    let frames: Vec<&str> = stack
        .lines()
        .map(str::trim)
        .filter(|line| line.starts_with("at ") && line.contains(specifier))
        .collect();
    frames.join("\n")
}
