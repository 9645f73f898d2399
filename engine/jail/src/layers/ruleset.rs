//! Landlock with no rules: every file access, every TCP port, abstract sockets
//! and signals to processes outside are refused by the kernel, whatever the
//! system-call filter lets through.

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetStatus,
    Scope,
};

/// The newest interface this build asks for; older kernels give what they have.
const WANTED: ABI = ABI::V6;

/// Restricts this process and its later children.
pub(crate) fn restrict() -> Result<(), String> {
    let status = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(WANTED))
        .and_then(|ruleset| ruleset.handle_access(AccessNet::from_all(WANTED)))
        .and_then(|ruleset| ruleset.scope(Scope::from_all(WANTED)))
        .and_then(|ruleset| ruleset.create())
        .and_then(|ruleset| ruleset.restrict_self())
        .map_err(|error| error.to_string())?;
    match status.ruleset {
        RulesetStatus::FullyEnforced => Ok(()),
        RulesetStatus::PartiallyEnforced => Err("only partly enforced by this kernel".into()),
        RulesetStatus::NotEnforced => Err("not enforced by this kernel".into()),
    }
}
