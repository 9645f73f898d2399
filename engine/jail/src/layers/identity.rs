//! Who a jailed process is: never uid 0, and without any capability in any set.

use crate::sys;
use std::io::Result;

/// The uid and gid of jailed processes when the engine runs as root: what every
/// distribution calls nobody.
pub(crate) const NOBODY: u32 = 65_534;

/// Gives up uid 0 but keeps the capabilities until the namespaces are made.
/// Becoming another user makes /proc/self root's, so dumpable is set again for
/// the id maps; the last step of the boot clears it.
pub(crate) fn leave_root() -> Result<()> {
    if sys::effective_uid() != 0 {
        return Ok(());
    }
    sys::prctl(libc::PR_SET_KEEPCAPS, 1, 0)?;
    sys::become_user(NOBODY)?;
    sys::raise_capabilities()?;
    sys::prctl(libc::PR_SET_DUMPABLE, 1, 0).map(drop)
}

/// Empties the bounding and ambient sets as far as allowed, then all others.
pub(crate) fn drop_capabilities() -> std::result::Result<(), String> {
    let mut bounding = Ok(());
    for capability in 0..64 {
        match sys::prctl(libc::PR_CAPBSET_DROP, capability, 0) {
            Ok(_) => {}
            // Past the last capability this kernel knows.
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => break,
            Err(error) => {
                bounding = Err(format!("the bounding set stays ({error}); all others are empty"));
            }
        }
    }
    let clear_all = libc::PR_CAP_AMBIENT_CLEAR_ALL as libc::c_ulong;
    let _ = sys::prctl(libc::PR_CAP_AMBIENT, clear_all, 0);
    sys::clear_capabilities().map_err(|error| error.to_string())?;
    bounding
}
