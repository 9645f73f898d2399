//! The binary's hidden lives that need V8: the process that makes the snapshot
//! once, and the jailed guest. Called first thing in `main`, before any thread.

use crate::guest::IsolateGuest;
use crate::snapshot::make_snapshot;
use cambium_jail::OneshotFn;
use std::io::Write;
use std::process::ExitCode;

/// First argument of the process that makes the snapshot.
pub(crate) const SNAPSHOT: &str = "__snapshot";

/// Takes over when this process was started as one of the roles; `None` for
/// ordinary commands. `oneshots` are the jail's, see [`cambium_jail::role_main`].
pub fn role_main(oneshots: &[(&str, OneshotFn)]) -> Option<ExitCode> {
    if std::env::args().nth(1).as_deref() == Some(SNAPSHOT) {
        let made = make_snapshot().map_err(|error| error.to_string()).and_then(|snapshot| {
            std::io::stdout().lock().write_all(&snapshot).map_err(|error| error.to_string())
        });
        return Some(match made {
            Ok(()) => ExitCode::SUCCESS,
            Err(reason) => {
                let _ = writeln!(std::io::stderr(), "{reason}");
                ExitCode::FAILURE
            }
        });
    }
    cambium_jail::role_main::<IsolateGuest>(oneshots)
}
