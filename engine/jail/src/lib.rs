//! Processes that have nothing: launch, zygote, layers, frames, limits,
//! verdicts. A sandbox implements [`Guest`] for what runs inside, calls
//! [`role_main`] first thing in the binary's `main`, and drives workers that
//! [`Jail::take`] hands out. This crate knows no JavaScript, no HTTP and no
//! vendor; everything a jailed process says is hostile to it.

mod guest;
mod role;

mod exit;
pub mod frames;
mod jail;
pub mod job;
mod limits;
mod oneshot;
mod program;
mod worker;

mod doctor;
mod error;
mod layers;

mod control;
mod init;
mod keeper;
mod launch;
mod process;
mod sys;
mod zygote;

pub use doctor::doctor;
pub use error::JailError;
pub use exit::{Exit, Killed, Verdict};
pub use guest::{Guest, Lock, Payload, WorkerSide};
pub use jail::{Jail, JailConfig};
pub use layers::LayerReport;
pub use limits::WorkerLimits;
pub use oneshot::{OneshotError, OneshotLimits};
pub use program::{Kept, Program, ProgramEnd, ProgramError, ProgramLimits, Shown};
pub use role::{OneshotFn, role_main};
pub use worker::{JobReader, JobWriter, Leash, Origin, Worker};
