//! What the process that holds the vault must not show or leave behind: its
//! memory to another process of its user, a core file, and of a panic more than
//! the place. A panic's own words may hold whatever was at hand. And the limits
//! it begins with.

use rustix::process::{
    DumpableBehavior, Resource, Rlimit, getrlimit, set_dumpable_behavior, setrlimit,
};
use std::io::Write;

/// Called first, before there is a thread or a secret; what is started from
/// here inherits the limit. What is executed is dumpable again, so the jail's
/// processes, which hold no secret, still write their own maps in `/proc`.
pub(crate) fn be() {
    if let Err(error) = set_dumpable_behavior(DumpableBehavior::NotDumpable) {
        say(&format!("this process's memory could not be closed to others: {error}"));
    }
    let none = Rlimit { current: Some(0), maximum: Some(0) };
    if let Err(error) = setrlimit(Resource::Core, none) {
        say(&format!("core files could not be switched off: {error}"));
    }
    // Each run, each request and each connection to a vendor holds a few; what is
    // started from here sets limits of its own.
    let files = getrlimit(Resource::Nofile);
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: files.maximum, ..files }) {
        say(&format!("the limit of open files could not be raised: {error}"));
    }
    std::panic::set_hook(Box::new(|panic| match panic.location() {
        Some(place) => say(&format!("panic at {place}")),
        None => say("panic"),
    }));
}

fn say(text: &str) {
    // There is nobody to tell if this cannot be written.
    let _ = writeln!(std::io::stderr(), "cambium: {text}");
}

#[cfg(test)]
mod tests {
    use rustix::process::{DumpableBehavior, Resource, dumpable_behavior, getrlimit};
    use std::os::unix::fs::MetadataExt;

    /// In a process of its own: the limit and the hook stay.
    #[test]
    fn d25_no_core_file_no_readable_memory_and_no_panics_words() {
        if std::env::var_os("CAMBIUM_TEST_FALLS").is_some() {
            super::be();
            assert_eq!(dumpable_behavior().unwrap(), DumpableBehavior::NotDumpable);
            // Not its user's any more, so its user cannot open it.
            assert_eq!(std::fs::metadata("/proc/self/mem").unwrap().uid(), 0);
            // What the jail reads of us is still ours to read.
            assert!(std::fs::read_to_string("/proc/self/fdinfo/0").is_ok());
            assert!(std::env::current_exe().unwrap().exists());
            assert_eq!(getrlimit(Resource::Core).maximum, Some(0));
            panic!("sk_live_{}", "S3CRET0123456789");
        }
        let name = "discreet::tests::d25_no_core_file_no_readable_memory_and_no_panics_words";
        let fell = std::process::Command::new(std::env::current_exe().unwrap())
            .args([name, "--exact", "--nocapture"])
            .env("CAMBIUM_TEST_FALLS", "1")
            .output()
            .unwrap();
        let said = [fell.stdout, fell.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        assert!(!fell.status.success() && said.contains("panic at "), "{said}");
        assert!(said.contains("discreet.rs") && !said.contains("S3CRET"), "{said}");
    }
}
