//! A kernel that refuses: a filter on this process and all it starts answers
//! EPERM to the calls of one layer of the jail. Unlike a switch of the machine it
//! touches nobody else.

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter,
};
use std::collections::BTreeMap;

/// Namespaces by the name of their layer.
const NAMESPACES: [(&str, i32); 7] = [
    ("user_namespace", libc::CLONE_NEWUSER),
    ("network_namespace", libc::CLONE_NEWNET),
    ("mount_namespace", libc::CLONE_NEWNS),
    ("ipc_namespace", libc::CLONE_NEWIPC),
    ("uts_namespace", libc::CLONE_NEWUTS),
    ("cgroup_namespace", libc::CLONE_NEWCGROUP),
    ("pid_namespace", libc::CLONE_NEWPID),
];

/// Refuses the calls of a layer from here on, in this process and its children.
pub fn refuse(layer: &str) -> Result<(), String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let rules = match layer {
        "landlock" => BTreeMap::from([(libc::SYS_landlock_create_ruleset, Vec::new())]),
        "empty_root" => BTreeMap::from([(libc::SYS_pivot_root, Vec::new())]),
        "seccomp" => BTreeMap::from([(libc::SYS_seccomp, Vec::new())]),
        name => {
            let flag = NAMESPACES.iter().find(|(known, _)| *known == name);
            let flag = flag.map(|(_, flag)| u64::from(*flag as u32)).ok_or("no such layer")?;
            let has = SeccompCmpOp::MaskedEq(flag);
            let rule = SeccompCondition::new(0, SeccompCmpArgLen::Dword, has, flag)
                .and_then(|condition| SeccompRule::new(vec![condition]))
                .map_err(|error| text(&error))?;
            BTreeMap::from([(libc::SYS_unshare, vec![rule])])
        }
    };
    let refused = SeccompAction::Errno(libc::EPERM as u32);
    let arch = TargetArch::try_from(std::env::consts::ARCH).map_err(|error| text(&error))?;
    let program = SeccompFilter::new(rules, SeccompAction::Allow, refused, arch)
        .and_then(BpfProgram::try_from)
        .map_err(|error| text(&error))?;
    apply_filter(&program).map_err(|error| text(&error))
}
