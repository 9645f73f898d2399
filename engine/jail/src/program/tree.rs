//! The file tree of a jailed program: a small tmpfs with what the program was
//! given, read-only, three devices, and one writable directory. Made below a
//! directory of the own mount namespace, then entered; what was outside is gone.

use super::{Program, Shown};
use crate::layers::NOBODY;
use crate::sys;
use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset,
    RulesetAttr, RulesetCreatedAttr, RulesetStatus, Scope,
};
use std::fs::{self, DirBuilder};
use std::io::{Error, ErrorKind, Result as IoResult, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, chown, symlink};
use std::path::{Component, Path, PathBuf};

/// Where the tree is made: the first of these that is there and hides nothing
/// the program is shown.
const ROOTS: [&str; 5] = ["/tmp", "/mnt", "/srv", "/opt", "/var"];
/// What the tree itself may take, bytes: the files given, names, links.
const TREE_BYTES: u64 = 64 * 1024 * 1024;
/// Files and folders in the tree or in the scratch directory.
const INODES: u64 = 16 * 1024;
/// Devices every program expects.
const DEVICES: [&str; 4] = ["/dev/null", "/dev/zero", "/dev/urandom", "/dev/random"];
/// The newest interface this build asks for; older kernels give what they have.
const WANTED: ABI = ABI::V6;

/// Where this program's tree is made.
pub(super) fn root(program: &Program) -> Result<&'static Path, String> {
    let hides = |root: &Path| program.shown.iter().any(|shown| shown.from.starts_with(root));
    let fitting = ROOTS.iter().map(Path::new).find(|root| root.is_dir() && !hides(root));
    fitting.ok_or_else(|| format!("no place for the file tree: {}", ROOTS.join(", ")))
}

/// Makes the tree in the own mount namespace. Answers the seeds that have no
/// place in it: another is where their folder would be, or they are one's folder.
pub(super) fn build(program: &Program, root: &Path) -> Result<Vec<PathBuf>, String> {
    let named = |path: &Path, error: Error| format!("{}: {error}", path.display());
    // Everything made here is for the program's user to read, who is another.
    sys::umask(0o022);
    sys::keep_mounts_private().map_err(|error| format!("private mounts: {error}"))?;
    sys::mount_tmpfs(root, TREE_BYTES, INODES, 0o755).map_err(|error| named(root, error))?;
    for device in DEVICES {
        let shown = Shown { from: device.into(), at: device.into() };
        show(root, &shown, true).map_err(|error| named(&shown.from, error))?;
    }
    for shown in &program.shown {
        show(root, shown, false).map_err(|error| named(&shown.from, error))?;
    }
    for (at, bytes) in &program.files {
        let write = inside(root, at).and_then(|place| {
            above(&place)?;
            fs::write(&place, bytes)?;
            fs::set_permissions(&place, fs::Permissions::from_mode(0o444))
        });
        write.map_err(|error| named(at, error))?;
    }
    for (at, to) in &program.links {
        let link = inside(root, at).and_then(|place| {
            above(&place)?;
            symlink(to, &place)
        });
        link.map_err(|error| named(at, error))?;
    }
    let scratch = inside(root, &program.scratch).and_then(|place| {
        folder(&place)?;
        sys::mount_tmpfs(&place, program.limits.scratch_bytes, INODES, 0o700)?;
        given(&place)?;
        Ok(place)
    });
    let scratch = scratch.map_err(|error| named(&program.scratch, error))?;
    let mut unplaced = Vec::new();
    for (at, bytes) in &program.seeds {
        match seed(&scratch, at, bytes) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => unplaced.push(at.clone()),
            other => other.map_err(|error| named(at, error))?,
        }
    }
    sys::make_read_only(root, false).map_err(|error| named(root, error))?;
    Ok(unplaced)
}

/// Puts a file into the working directory, the program's to change.
fn seed(scratch: &Path, at: &Path, bytes: &[u8]) -> IoResult<()> {
    if at.is_absolute() {
        return Err(Error::new(ErrorKind::InvalidInput, "not below the working directory"));
    }
    let place = inside(scratch, &Path::new("/").join(at))?;
    if place == scratch {
        return Err(Error::new(ErrorKind::InvalidInput, "no name"));
    }
    let mut above = scratch.to_owned();
    for part in at.parent().into_iter().flat_map(Path::components) {
        above.push(part);
        if !above.is_dir() {
            fs::create_dir(&above)?;
            given(&above)?;
        }
    }
    let mut file = fs::File::create_new(&place)?;
    file.write_all(bytes)?;
    given(&place)
}

/// Makes it the property of the program's user.
fn given(place: &Path) -> IoResult<()> {
    if sys::effective_uid() == 0 { chown(place, Some(NOBODY), Some(NOBODY)) } else { Ok(()) }
}

/// Makes the tree the root of this process.
pub(super) fn enter(root: &Path) -> IoResult<()> {
    sys::keep_mounts_private()?;
    sys::become_root(root)
}

/// The last layer on files: read and execute everywhere, write below the scratch
/// directory and to the null device; no TCP port, no abstract socket, no signal
/// outwards.
pub(super) fn restrict(scratch: &Path) -> Result<(), String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let path = |path: &Path| PathFd::new(path).map_err(|error| text(&error));
    let reading = AccessFs::from_read(WANTED);
    let writing = AccessFs::from_all(WANTED) & !AccessFs::MakeChar & !AccessFs::MakeBlock;
    let device = AccessFs::ReadFile | AccessFs::WriteFile;
    let status = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(WANTED))
        .and_then(|ruleset| ruleset.handle_access(AccessNet::from_all(WANTED)))
        .and_then(|ruleset| ruleset.scope(Scope::from_all(WANTED)))
        .and_then(|ruleset| ruleset.create())
        .map_err(|error| text(&error))?
        .add_rule(PathBeneath::new(path(Path::new("/"))?, reading))
        .map_err(|error| text(&error))?
        .add_rule(PathBeneath::new(path(scratch)?, writing))
        .map_err(|error| text(&error))?
        .add_rule(PathBeneath::new(path(Path::new("/dev/null"))?, device))
        .map_err(|error| text(&error))?
        .restrict_self()
        .map_err(|error| text(&error))?;
    match status.ruleset {
        // The mounts say the same of files, the namespaces of the rest.
        RulesetStatus::FullyEnforced
        | RulesetStatus::PartiallyEnforced
        | RulesetStatus::NotEnforced => Ok(()),
    }
}

fn show(root: &Path, shown: &Shown, device: bool) -> IoResult<()> {
    let place = inside(root, &shown.at)?;
    if fs::metadata(&shown.from)?.is_dir() {
        folder(&place)?;
    } else {
        above(&place)?;
        fs::File::create_new(&place)?;
    }
    sys::bind(&shown.from, &place)?;
    // A device is for reading and writing, and its file system says so.
    if device { Ok(()) } else { sys::make_read_only(&place, true) }
}

/// Where a path of the program's is while the tree is made.
fn inside(root: &Path, path: &Path) -> IoResult<PathBuf> {
    let mut place = root.to_owned();
    let mut parts = path.components();
    if parts.next() != Some(Component::RootDir) {
        return Err(Error::new(ErrorKind::InvalidInput, "not absolute"));
    }
    for part in parts {
        let Component::Normal(part) = part else {
            return Err(Error::new(ErrorKind::InvalidInput, "a path with dots"));
        };
        place.push(part);
    }
    Ok(place)
}

fn folder(place: &Path) -> IoResult<()> {
    DirBuilder::new().recursive(true).mode(0o755).create(place)
}

fn above(place: &Path) -> IoResult<()> {
    place.parent().map_or(Ok(()), folder)
}
