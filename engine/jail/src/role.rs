//! The binary's other lives: called first thing in `main`, before any thread,
//! it takes over when the process was started as a zygote.

use crate::guest::Guest;
use crate::zygote::{self, Boot, GuestEntry, OneshotEntry};
use std::process::ExitCode;

/// First argument of a zygote; hidden from the command line's help.
pub(crate) const ZYGOTE: &str = "__zygote";
/// First argument of a foreign program's supervisor.
pub(crate) const PROGRAM: &str = "__program";
/// It boots before it forks.
pub(crate) const EARLY: &str = "early";
/// It forks first and its one worker boots: the exec path.
pub(crate) const LATE: &str = "late";
/// Exit code of a process that could not boot or lock.
pub(crate) const EXIT_BOOT: i32 = 81;

/// A pure function over hostile bytes.
pub type OneshotFn = fn(&[u8]) -> Vec<u8>;

/// Takes over when this process is a role of the jail; `None` for ordinary
/// commands. Call it before any thread exists. `oneshots` are the functions
/// that [`crate::Jail::oneshot`] can name.
pub fn role_main<G: Guest>(oneshots: &[(&str, OneshotFn)]) -> Option<ExitCode> {
    let mut arguments = std::env::args().skip(1);
    match arguments.next().as_deref() {
        Some(ZYGOTE) => {}
        Some(PROGRAM) => {
            let length = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(0);
            return Some(crate::program::main(length));
        }
        _ => return None,
    }
    let boot = match arguments.next().as_deref() {
        Some(EARLY) => Boot::Early,
        Some(LATE) => Boot::Late,
        _ => return Some(ExitCode::from(EXIT_BOOT as u8)),
    };
    let length = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(0);
    match arguments.next() {
        None => zygote::main::<GuestEntry<G>>(boot, length, ()),
        Some(name) => {
            let function = oneshots.iter().find(|(known, _)| *known == name).map(|(_, f)| *f);
            zygote::main::<OneshotEntry>(boot, length, (name, function))
        }
    }
}
