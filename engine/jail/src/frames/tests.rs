#![allow(clippy::unwrap_used)]

use super::fetch::{CHUNK_MAX, FetchFrame, RequestHead, WINDOW};
use super::streams::{Event, STREAMS_MAX, Streams};
use super::*;

const SMALL: FrameLimits = FrameLimits { payload: 100, frames: 3, bytes: 150 };

async fn read_all(bytes: &[u8], limits: FrameLimits) -> Result<Vec<Frame>, FrameError> {
    let mut reader = FrameReader::new(bytes, limits);
    let mut frames = Vec::new();
    while let Some(frame) = reader.next().await? {
        frames.push(frame);
    }
    Ok(frames)
}

fn raw(length: u32, rest: &[u8]) -> Vec<u8> {
    [&length.to_le_bytes()[..], rest].concat()
}

#[tokio::test]
async fn a_frame_survives_the_round_trip_in_any_slices() {
    let (near, far) = tokio::io::duplex(3);
    let mut writer = FrameWriter::new(near);
    let mut reader = FrameReader::new(far, SMALL);
    let (sent, got) = tokio::join!(writer.send_parts(7, &[b"one ", b"two"]), reader.next());
    sent.unwrap();
    assert_eq!(got.unwrap().unwrap(), Frame { kind: 7, payload: Bytes::from_static(b"one two") });
}

#[tokio::test]
async fn s45_bad_lengths_are_refused_before_anything_is_allocated() {
    for (bytes, expected) in [
        (raw(0, b""), FrameError::Empty),
        (raw(u32::MAX, b"x"), FrameError::TooLarge { length: u32::MAX as usize - 1, most: 100 }),
        (raw(102, b"x"), FrameError::TooLarge { length: 101, most: 100 }),
        (raw(9, b"short"), FrameError::Truncated),
        (b"\x01\x00".to_vec(), FrameError::Truncated),
    ] {
        assert_eq!(read_all(&bytes, SMALL).await.unwrap_err(), expected);
    }
}

#[tokio::test]
async fn s45_a_run_has_a_budget_of_frames_and_bytes() {
    let tiny = raw(1, b"\x10");
    assert_eq!(read_all(&tiny.repeat(3), SMALL).await.unwrap().len(), 3);
    assert_eq!(read_all(&tiny.repeat(4), SMALL).await.unwrap_err(), FrameError::Budget("frames"));
    let big = raw(101, &[1; 101]);
    assert_eq!(read_all(&big.repeat(2), SMALL).await.unwrap_err(), FrameError::Budget("bytes"));
}

#[tokio::test]
async fn a_send_cut_off_half_way_poisons_the_writer() {
    let (near, _far) = tokio::io::duplex(2);
    let mut writer = FrameWriter::new(near);
    let cut = tokio::time::timeout(std::time::Duration::from_millis(5), writer.send(1, b"long"));
    assert!(cut.await.is_err());
    assert_eq!(writer.send(1, b"").await.unwrap_err(), FrameError::CutOff);
}

fn frame(kind: u8, stream: u32, rest: &[u8]) -> Frame {
    Frame { kind, payload: [&stream.to_le_bytes()[..], rest].concat().into() }
}

#[test]
fn s45_malformed_fetch_frames_are_refused() {
    let long = vec![b'x'; CHUNK_MAX + 1];
    let many = format!(
        r#"{{"method":"GET","target":"/","headers":[{}["a","b"]]}}"#,
        r#"["a","b"],"#.repeat(256)
    );
    for bad in [
        Frame { kind: 3, payload: Bytes::from_static(b"\x01") },
        frame(1, 1, b"{"),
        frame(1, 1, br#"{"method":"GET","target":"/","extra":1}"#),
        frame(1, 1, br#"{"method":"GET"}"#),
        frame(
            1,
            1,
            "{\"method\":\"GET\",\"target\":\"/\",\"headers\":[[\"a\",\"\u{100}\"]]}".as_bytes(),
        ),
        frame(1, 1, many.as_bytes()),
        frame(1, 1, &[b'['; 90_000]),
        frame(2, 1, b""),
        frame(2, 1, &long),
        frame(3, 1, b"tail"),
        frame(7, 1, b"abc"),
        frame(0, 1, b""),
        frame(99, 1, b""),
    ] {
        assert!(FetchFrame::parse(bad.clone()).is_err(), "{bad:?}");
    }
}

fn request(body: bool) -> FetchFrame {
    FetchFrame::Request(RequestHead {
        method: "GET".into(),
        host: None,
        target: "/".into(),
        headers: vec![("a".into(), "\u{ff}".into())],
        body,
        sdk: false,
    })
}

#[tokio::test]
async fn fetch_frames_survive_the_round_trip() {
    for sent in [
        request(true),
        FetchFrame::RequestChunk(Bytes::from_static(b"x")),
        FetchFrame::RequestEnd,
        FetchFrame::ResponseEnd,
        FetchFrame::Credit(17),
        FetchFrame::Cancel,
    ] {
        let mut bytes = Vec::new();
        sent.send(5, &mut FrameWriter::new(&mut bytes)).await.unwrap();
        let frame = read_all(&bytes, SMALL).await.unwrap().remove(0);
        assert_eq!(FetchFrame::parse(frame).unwrap(), (5, sent));
    }
}

#[test]
fn s45_frames_out_of_order_are_refused() {
    let mut streams = Streams::default();
    let chunk = |n| FetchFrame::RequestChunk(Bytes::from(vec![0; n]));
    assert!(streams.accept(1, FetchFrame::RequestEnd).is_err(), "never opened");
    assert!(streams.accept(0, request(false)).is_err(), "id 0");
    assert!(matches!(streams.accept(4, request(true)).unwrap(), Event::Open(_)));
    assert!(streams.accept(3, request(true)).is_err(), "ids rise");
    assert!(streams.accept(4, request(true)).is_err(), "ids are not reused");
    assert!(streams.accept(5, chunk(1)).is_err(), "never opened");
    assert!(streams.accept(4, FetchFrame::ResponseEnd).is_err(), "only the parent answers");
    assert!(streams.accept(4, FetchFrame::Credit(1)).is_err(), "window is full");
    assert!(matches!(streams.accept(4, chunk(WINDOW as usize)).unwrap(), Event::Chunk(_)));
    assert!(streams.accept(4, chunk(1)).is_err(), "credit is used up");
    streams.gave_credit(4, 1);
    assert!(streams.accept(4, chunk(1)).is_ok());
    assert_eq!(streams.accept(4, FetchFrame::RequestEnd).unwrap(), Event::Complete);
    assert!(streams.accept(4, chunk(1)).is_err(), "after the end");
    assert!(streams.accept(4, FetchFrame::RequestEnd).is_err(), "ended twice");
    assert_eq!(streams.charge(4, u32::MAX), Some(WINDOW));
    assert_eq!(streams.charge(4, 1), Some(0));
    assert_eq!(streams.accept(4, FetchFrame::Credit(9)).unwrap(), Event::Credit(9));
    streams.close(4);
    assert_eq!(streams.accept(4, FetchFrame::Credit(9)).unwrap(), Event::Late);
    assert_eq!(streams.charge(4, 1), None);
}

#[test]
fn s45_no_more_than_eight_streams_at_once() {
    let mut streams = Streams::default();
    for id in 1..=STREAMS_MAX as u32 {
        streams.accept(id, request(false)).unwrap();
    }
    assert!(streams.accept(9, request(false)).is_err());
    streams.close(1);
    assert!(streams.accept(9, request(false)).is_ok());
}

/// A small generator with a fixed seed: the same garbage on every machine.
fn garbage(state: &mut u64) -> u8 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    (*state >> 32) as u8
}

#[tokio::test]
async fn s45_garbage_is_refused_without_a_panic() {
    let mut state = 0x9e37_79b9_7f4a_7c15;
    let limits = FrameLimits { payload: 64, frames: 1_000, bytes: 10_000 };
    for _ in 0..5_000 {
        // Half of the lengths are small, so that payloads are looked at too.
        let mut bytes = Vec::new();
        for _ in 0..4 {
            let length = u32::from(garbage(&mut state) % 24);
            let kind = garbage(&mut state) % 11;
            bytes.extend_from_slice(&length.to_le_bytes());
            bytes.extend([kind, garbage(&mut state) % 4, 0, 0, 0]);
            bytes.extend((5..length).map(|_| garbage(&mut state)));
        }
        let mut reader = FrameReader::new(&bytes[..], limits);
        let mut streams = Streams::default();
        while let Ok(Some(frame)) = reader.next().await {
            let Ok((stream, frame)) = FetchFrame::parse(frame) else { break };
            if streams.accept(stream, frame).is_err() {
                break;
            }
            assert!(streams.len() <= STREAMS_MAX);
        }
    }
}
