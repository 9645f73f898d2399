//! The key file, MACs and sealing.
#![allow(clippy::unwrap_used)]

use super::*;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("cambium-vault-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
    fn key(&self) -> PathBuf {
        self.0.join("key")
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn open(path: &Path) -> Result<Vault, VaultError> {
    Vault::open(&KeySource::File(path.to_owned()))
}

#[test]
fn a_key_is_made_once_and_read_again() {
    let directory = Directory::new("again");
    let mac = open(&directory.key()).unwrap().mac("x", &[b"a"]);
    assert_eq!(directory.key().metadata().unwrap().permissions().mode() & 0o7777, 0o600);
    let vault = open(&directory.key()).unwrap();
    assert!(vault.mac_holds("x", &[b"a"], &mac));
    for (domain, fields, mac) in [
        ("y", &[&b"a"[..]][..], &mac[..]),
        ("x", &[b"b"], &mac),
        ("x", &[b"a", b""], &mac),
        ("x", &[], &mac),
        ("x", &[b"a"], &mac[..31]),
        ("x", &[b"a"], b""),
    ] {
        assert!(!vault.mac_holds(domain, fields, mac), "{domain} {fields:?}");
    }
    assert_ne!(vault.mac("x", &[b"ab", b"c"]), vault.mac("x", &[b"a", b"bc"]));
}

#[test]
fn a_key_others_can_read_is_refused() {
    let directory = Directory::new("mode");
    open(&directory.key()).unwrap();
    for mode in [0o640, 0o604, 0o644, 0o700, 0o400] {
        std::fs::set_permissions(directory.key(), PermissionsExt::from_mode(mode)).unwrap();
        let error = open(&directory.key()).unwrap_err().to_string();
        assert!(error.contains(&format!("{mode:04o}")), "{error}");
    }
}

#[test]
fn a_key_file_that_is_odd_is_refused() {
    let directory = Directory::new("odd");
    let real = directory.0.join("real");
    open(&real).unwrap();
    std::os::unix::fs::symlink(&real, directory.key()).unwrap();
    assert!(open(&directory.key()).unwrap_err().to_string().contains("regular"));
    std::fs::remove_file(directory.key()).unwrap();
    std::fs::hard_link(&real, directory.key()).unwrap();
    assert!(open(&directory.key()).unwrap_err().to_string().contains("hard link"));
    std::fs::remove_file(directory.key()).unwrap();
    std::fs::write(&real, b"short").unwrap();
    assert!(open(&real).unwrap_err().to_string().contains("5 bytes"));
    open(&directory.0.join("none/key")).unwrap_err();
}

#[test]
fn what_is_sealed_opens_only_as_it_was_bound() {
    let directory = Directory::new("seal");
    let vault = open(&directory.key()).unwrap();
    let sealed = vault.seal(b"secret", b"here").unwrap();
    let opened = vault.unseal(&sealed.wrapped_key, &sealed.sealed, b"here").unwrap();
    assert_eq!(&opened[..], b"secret");
    assert!(vault.unseal(&sealed.wrapped_key, &sealed.sealed, b"there").is_none());
    let other = vault.seal(b"secret", b"here").unwrap();
    assert_ne!(other.sealed, sealed.sealed);
    assert!(vault.unseal(&other.wrapped_key, &sealed.sealed, b"here").is_none());
    for cut in 0..sealed.sealed.len() {
        assert!(vault.unseal(&sealed.wrapped_key, &sealed.sealed[..cut], b"here").is_none());
    }
    assert!(vault.unseal(&[], &sealed.sealed, b"here").is_none());
    let elsewhere = open(&directory.0.join("other")).unwrap();
    assert!(elsewhere.unseal(&sealed.wrapped_key, &sealed.sealed, b"here").is_none());
}
