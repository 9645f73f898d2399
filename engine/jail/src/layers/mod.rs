//! The layers a jailed process is under, what each did on this machine, and
//! what to do where one does not hold. Applying them is in the files beside;
//! the order is the zygote's.

pub(crate) mod filter;
mod identity;
mod known;
mod limits;
mod maps;
mod namespaces;
mod ruleset;

pub(crate) use identity::{NOBODY, drop_capabilities, leave_root};
pub(crate) use limits::{taken_first, worker_limits, zygote_limits};
pub(crate) use maps::prepare_for_forks;
pub(crate) use namespaces::enter as enter_namespaces;
pub(crate) use ruleset::restrict as restrict_files;

use serde::{Deserialize, Serialize};

/// One layer, and whether it holds here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LayerReport {
    /// `seccomp`, `landlock`, `user_namespace`, ….
    pub layer: String,
    /// It is in force.
    pub holds: bool,
    /// What it is good for, or what the kernel said.
    pub detail: String,
    /// What an operator can do; empty when it holds.
    pub next: String,
}

/// What was applied so far in this process.
#[derive(Debug, Default)]
pub(crate) struct Applied(Vec<LayerReport>);

impl Applied {
    /// Notes how a layer went.
    pub(crate) fn note<E: std::fmt::Display>(
        &mut self,
        layer: &str,
        good_for: &str,
        next: &str,
        result: Result<(), E>,
    ) -> bool {
        let holds = result.is_ok();
        self.0.push(LayerReport {
            layer: layer.into(),
            holds,
            detail: result.err().map_or_else(|| good_for.into(), |error| error.to_string()),
            next: if holds { String::new() } else { next.into() },
        });
        holds
    }

    /// Whether a layer was noted as holding.
    pub(crate) fn holds(&self, layer: &str) -> bool {
        self.0.iter().any(|report| report.layer == layer && report.holds)
    }

    /// All notes, in order.
    pub(crate) fn into_reports(self) -> Vec<LayerReport> {
        self.0
    }
}

/// Files: what closes behind a finished boot, in a zygote before it forks or in
/// a worker that booted by itself. `own_mounts` says that the mount namespace is
/// ours; without it the file tree must not be touched, since it is everybody's.
pub(crate) fn seal(applied: &mut Applied, own_mounts: bool) {
    let emptied = match own_mounts {
        true => crate::sys::empty_root(),
        false => Err(std::io::Error::other("there is no own mount namespace")),
    };
    applied.note(
        "empty_root",
        "the file tree is empty and read-only",
        "allow unprivileged user namespaces with mounts",
        emptied,
    );
    applied.note(
        "landlock",
        "no file, no TCP, no abstract socket, no signal outwards",
        "use a kernel from 6.12 on with landlock in its `lsm=` list",
        restrict_files(),
    );
}
