//! Rows D6 to D17, H3, H11, I2 and E for schemes whose credential is a token:
//! got once however many wait, never stale, never twice, never shown, and got
//! over the same guarded way out as everything else.
#![allow(clippy::unwrap_used, missing_docs)]

mod hosts;
mod life;
mod sign_in;
mod support;
mod told;
