//! `cambium vault rotate`, left alone and killed at any moment.

use crate::shop::{Shop, TOKEN, connect};
use std::time::Duration;

const KILLS: u32 = 6;
/// The latest moment of a kill: a few rotations' worth.
const LATEST: Duration = Duration::from_millis(1_500);
/// Bytes of a key file with one sealing key.
const ONE_KEY: usize = 84;

#[test]
fn d16_a_rotated_vault_opens_every_secret_and_the_old_key_opens_none() {
    let mut shop = Shop::open();
    let path = shop.home.data_dir().join("vault.key");
    let first = std::fs::read(&path).unwrap();
    shop.read().ok();
    let rotated = shop.home.run(&["vault", "rotate"]).ok();
    assert_eq!((&rotated["resealed"], &rotated["dead"]), (&1.into(), &0.into()), "{rotated}");
    let second = std::fs::read(&path).unwrap();
    assert!(first != second && second.len() == ONE_KEY);
    shop.read().ok();
    shop.stop();
    shop.start();
    shop.read().ok();
    let sent = format!("Bearer {TOKEN}");
    assert!(shop.vendor.received().iter().all(|r| r.authorization.as_deref() == Some(&*sent)));

    // Whoever has the old file and the new database has no secret.
    shop.stop();
    std::fs::write(&path, &first).unwrap();
    shop.start();
    let before = shop.vendor.received().len();
    let refused = shop.read();
    let said = format!("{}{}", refused.stdout, refused.stderr);
    assert!(said.contains("credential_unavailable"), "{said}");
    assert_eq!(shop.vendor.received().len(), before);
    shop.stop();
    std::fs::write(&path, &second).unwrap();
    shop.start();
    shop.read().ok();

    let wrong = shop.home.run(&["vault", "rotate", "--code", "AAAA-BBBB"]);
    assert_eq!((wrong.code, wrong.error().as_str()), (5, "person_required"));
    shop.stop();
}

#[test]
fn d16_a_rotation_killed_at_any_moment_loses_no_secret() {
    let mut shop = Shop::open();
    for number in 0..4 {
        connect(&shop.home, &shop.vendor, &format!("shop-{number}"));
    }
    for round in 0..KILLS {
        std::thread::scope(|scope| {
            let rotating = scope.spawn(|| {
                // Until its server is gone.
                while shop.home.run(&["vault", "rotate"]).code == 0 {}
            });
            // Some moment of it: which one is the point of the test.
            std::thread::sleep(some(LATEST));
            let pid = shop.home.run(&["status"]);
            if pid.code == 0 {
                let pid = pid.ok()["pid"].as_i64().unwrap();
                let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
                rustix::process::kill_process(pid, rustix::process::Signal::Kill).unwrap();
            }
            rotating.join().unwrap();
        });
        drop(shop.server.take());
        shop.start();
        let key = std::fs::read(shop.home.data_dir().join("vault.key")).unwrap();
        assert_eq!(key.len(), ONE_KEY, "round {round}: the start takes a rotation up");
        shop.read().ok();
    }
    let rotated = shop.home.run(&["vault", "rotate"]).ok();
    assert_eq!((&rotated["resealed"], &rotated["dead"]), (&5.into(), &0.into()), "{rotated}");
    shop.stop();
}

/// A random part of a span.
fn some(latest: Duration) -> Duration {
    let mut random = [0; 4];
    getrandom::fill(&mut random).unwrap();
    latest.mul_f64(f64::from(u32::from_le_bytes(random)) / f64::from(u32::MAX))
}
