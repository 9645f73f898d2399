//! One-shot jobs: an answer, or a bounded end.

use crate::support::{PATHS, jail};
use cambium_jail::{OneshotError, OneshotLimits, Verdict, WorkerLimits};
use std::time::Duration;

#[tokio::test]
async fn a_oneshot_answers_on_both_paths() {
    for path in PATHS {
        let jail = jail(path);
        let limits = OneshotLimits::default();
        assert_eq!(jail.oneshot("reverse", b"abc", limits).await.unwrap(), &b"cba"[..]);
        assert_eq!(jail.oneshot("reverse", b"", limits).await.unwrap(), &b""[..]);
        let large = vec![7; 3 << 20];
        assert_eq!(jail.oneshot("reverse", &large, limits).await.unwrap(), &large[..]);
        assert!(jail.oneshot("nothing", b"", limits).await.is_err());
        jail.shutdown().await;
    }
}

#[tokio::test]
async fn s54_a_oneshot_that_runs_away_ends_bounded_and_the_next_answers() {
    let jail = jail(PATHS[0]);
    let cpu = Duration::from_millis(200);
    let worker = WorkerLimits { cpu, ..OneshotLimits::default().worker };
    let limits = OneshotLimits { worker, wall: Duration::from_secs(5), output_bytes: 1024 };
    let spun = jail.oneshot("spin", b"", limits).await.unwrap_err();
    assert_eq!(spun, OneshotError::Ended(Verdict::CpuLimit));
    let flooded = jail.oneshot("flood", b"", limits).await.unwrap_err();
    assert!(matches!(flooded, OneshotError::Answer(_)), "{flooded:?}");
    let deep = jail.oneshot("deep", b"x", OneshotLimits::default()).await.unwrap_err();
    assert_eq!(deep, OneshotError::Ended(Verdict::Crashed(libc::SIGSEGV)));
    let short = OneshotLimits { wall: Duration::from_millis(100), ..OneshotLimits::default() };
    let slow = jail.oneshot("spin", b"", short).await.unwrap_err();
    assert_eq!(slow, OneshotError::Timeout(short.wall));
    assert_eq!(jail.oneshot("reverse", b"ab", limits).await.unwrap(), &b"ba"[..]);
    jail.shutdown().await;
}
