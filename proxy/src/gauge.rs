//! How much one connection may be asked for over all its runs: a rate, if a
//! person set one, and a number at the same time. The bucket is pure; time is
//! an argument.

use crate::{Limits, Overrides, Refusal};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Microseconds in a minute.
const MINUTE: u64 = 60_000_000;

/// What one state of a connection has left.
pub(crate) struct Gauge {
    bucket: Option<Mutex<Bucket>>,
    slots: Arc<Semaphore>,
    most: usize,
}

/// A minute's requests, filled up evenly.
struct Bucket {
    a_minute: u32,
    /// Microseconds' worth of what may still go.
    credit: u64,
    filled: u64,
}

impl Bucket {
    fn new(a_minute: u32) -> Self {
        Self { a_minute, credit: MINUTE, filled: 0 }
    }

    /// Takes one, or says how many microseconds until there is one.
    fn take(&mut self, now: u64) -> Result<(), u64> {
        let passed = if self.filled == 0 { 0 } else { now.saturating_sub(self.filled) };
        self.filled = self.filled.max(now).max(1);
        self.credit = self.credit.saturating_add(passed).min(MINUTE);
        let price = MINUTE.div_ceil(u64::from(self.a_minute.max(1)));
        match self.credit.checked_sub(price) {
            Some(left) => {
                self.credit = left;
                Ok(())
            }
            None => Err(price - self.credit),
        }
    }
}

impl Gauge {
    pub(crate) fn new(overrides: &Overrides, limits: &Limits) -> Self {
        let most = overrides.most_at_a_time(limits);
        Self {
            bucket: overrides.rate.map(|rate| Mutex::new(Bucket::new(rate))),
            slots: Arc::new(Semaphore::new(most)),
            most,
        }
    }

    /// Counts one request against the rate.
    pub(crate) fn count(&self, now_us: u64) -> Result<(), Refusal> {
        let Some(bucket) = &self.bucket else { return Ok(()) };
        let mut bucket = bucket.lock().unwrap_or_else(PoisonError::into_inner);
        bucket.take(now_us).map_err(|wait| {
            Refusal::RateLimited(format!(
                "the connection allows {} requests a minute; the next one may go in {} ms",
                bucket.a_minute,
                wait.div_ceil(1000)
            ))
        })
    }

    /// A place among the connection's requests under way.
    pub(crate) async fn slot(&self, patience: Duration) -> Result<OwnedSemaphorePermit, Refusal> {
        match tokio::time::timeout(patience, self.slots.clone().acquire_owned()).await {
            Ok(Ok(slot)) => Ok(slot),
            Ok(Err(_)) | Err(_) => Err(Refusal::RateLimited(format!(
                "the connection allows {} requests at a time, and none has ended in {} s",
                self.most,
                patience.as_secs()
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b13_a_bucket_lets_its_rate_through_and_no_more() {
        let mut bucket = Bucket::new(60);
        let start = 5;
        assert_eq!((0..100).filter(|_| bucket.take(start).is_ok()).count(), 60);
        assert_eq!(bucket.take(start), Err(1_000_000));
        assert_eq!(bucket.take(start + 400_000), Err(600_000));
        assert_eq!(bucket.take(start + 1_000_000), Ok(()));
        assert_eq!(bucket.take(start + 1_000_000), Err(1_000_000));
        // A clock that goes back gives nothing, and a long rest no more than a minute's.
        assert!(bucket.take(start).is_err());
        let later = start + 10 * MINUTE;
        assert_eq!((0..100).filter(|_| bucket.take(later).is_ok()).count(), 60);
    }
}
