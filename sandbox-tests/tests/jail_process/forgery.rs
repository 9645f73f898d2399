//! Row 45: frames a hostile worker forges. The parent refuses each, and ends
//! the worker when it lets go of the leash.

use crate::support::{PATHS, jail, take};
use cambium_jail::Verdict;
use cambium_jail::frames::fetch::{FETCH_BUDGET, FetchFrame};
use cambium_jail::frames::streams::Streams;
use cambium_jail::frames::{FrameError, FrameReader};

#[tokio::test]
async fn s45_a_forged_job_frame_is_refused_and_the_next_worker_is_fine() {
    let jail = jail(PATHS[0]);
    for (forged, expected) in [
        ("forge 0 0 0 0", FrameError::Empty),
        ("forge 255 255 255 255 17", FrameError::TooLarge { length: 4_294_967_294, most: 4096 }),
        ("forge 2 16 0 0 17", FrameError::TooLarge { length: 4097, most: 4096 }),
    ] {
        let mut worker = take(&jail, "version").await;
        worker.tell(forged).await;
        assert_eq!(worker.hear().await.unwrap_err(), expected, "{forged}");
        worker.leash.kill();
        assert_eq!(worker.end().await.verdict(), Verdict::Killed);
    }
    assert!(take(&jail, "version").await.ask("getpid").await.is_ok());
    jail.shutdown().await;
}

#[tokio::test]
async fn s45_a_forged_fetch_frame_is_refused() {
    let jail = jail(PATHS[0]);
    for forged in
        ["99 abcd", "1 \0\0", "1 \u{1}\0\0\0{\"method\":1}", "4 \u{1}\0\0\0{\"status\":200}"]
    {
        let mut worker = take(&jail, "version").await;
        assert_eq!(worker.ask(&format!("fetch {forged}")).await.unwrap(), "sent");
        let (reader, _writer) = worker.fetch.split();
        let frame = FrameReader::new(reader, FETCH_BUDGET).next().await.unwrap().unwrap();
        let judged = FetchFrame::parse(frame)
            .and_then(|(stream, frame)| Streams::default().accept(stream, frame));
        assert!(judged.is_err(), "{forged:?} gave {judged:?}");
    }
    jail.shutdown().await;
}
