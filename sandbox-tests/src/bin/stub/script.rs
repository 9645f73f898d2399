//! A script for a worker that the isolate's own driver talks to, one step a line:
//! `job HEX` and `fetch HEX` write bytes to a socket (`N* fetch HEX` writes them N
//! times), `read N` takes N bytes of replies and `drain` all from there on, `call
//! NAME` tries a system call, `end` sends the ending of a run that returned its text so far, `shut fetch`
//! closes a socket, `hang` waits to be killed and `exit N` ends.

use crate::calls::attack;
use cambium_jail::frames::{FrameReader, GUEST_KINDS};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

/// The driver's kinds of an ending and of a piece of its result.
const ENDING: u8 = GUEST_KINDS + 17;
const RESULT_PIECE: u8 = GUEST_KINDS + 18;

/// The module's text, which follows the job's head in pieces.
pub(crate) async fn read(head: &str, reader: &mut FrameReader<OwnedReadHalf>) -> String {
    let head: serde_json::Value = serde_json::from_str(head).unwrap();
    let size = head["code_bytes"].as_u64().unwrap() as usize;
    let mut source = Vec::new();
    while source.len() < size {
        source.extend_from_slice(&reader.next().await.unwrap().unwrap().payload);
    }
    source.truncate(size);
    String::from_utf8(source).unwrap()
}

/// Follows the script; the answer is the exit code.
pub(crate) async fn follow(
    script: &str,
    job: OwnedWriteHalf,
    replies: OwnedReadHalf,
    fetch: OwnedWriteHalf,
) -> i32 {
    let (mut job, mut fetch, mut replies) = (job, Some(fetch), Some(replies));
    let mut said = String::new();
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (times, step) = match line.split_once("* ") {
            Some((times, step)) => (times.parse().unwrap(), step),
            None => (1_u64, line),
        };
        let (word, rest) = step.split_once(' ').unwrap_or((step, ""));
        // A driver that has seen enough closes its ends; then it kills.
        let done = match word {
            "job" => write(&mut job, rest, times).await,
            "fetch" => write(fetch.as_mut().unwrap(), rest, times).await,
            "read" => {
                let mut bytes = vec![0; rest.parse().unwrap()];
                replies.as_mut().unwrap().read_exact(&mut bytes).await.map(drop)
            }
            "drain" => {
                let mut replies = replies.take().unwrap();
                tokio::spawn(async move {
                    let mut bytes = vec![0; 4096];
                    while replies.read(&mut bytes).await.is_ok_and(|got| got > 0) {}
                });
                Ok(())
            }
            "call" => {
                said += &attack(rest);
                Ok(())
            }
            "end" => {
                let text = serde_json::to_string(&said).unwrap();
                let ending = format!(r#"{{"end":"value","bytes":{}}}"#, text.len());
                let mut bytes = framed(ENDING, ending.as_bytes());
                bytes.extend(framed(RESULT_PIECE, text.as_bytes()));
                job.write_all(&bytes).await
            }
            "shut" => {
                drop(fetch.take());
                Ok(())
            }
            "hang" => std::future::pending().await,
            "exit" => return rest.parse().unwrap(),
            other => panic!("no step {other}"),
        };
        if done.is_err() {
            std::future::pending::<()>().await;
        }
    }
    std::future::pending().await
}

async fn write(to: &mut OwnedWriteHalf, hex: &str, times: u64) -> std::io::Result<()> {
    let digit = |byte: u8| (byte as char).to_digit(16).unwrap() as u8;
    let bytes: Vec<u8> =
        hex.as_bytes().chunks(2).map(|pair| digit(pair[0]) * 16 + digit(pair[1])).collect();
    for _ in 0..times {
        to.write_all(&bytes).await?;
    }
    Ok(())
}

fn framed(kind: u8, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len() + 1).unwrap();
    [&length.to_le_bytes()[..], &[kind], payload].concat()
}
