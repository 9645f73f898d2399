//! The jail against a worker that is already owned by its attacker: the stub
//! guest tries what the attack rows list, from inside a locked process, on the
//! zygote and on the exec path. Some checks read /proc of a jailed process,
//! which only root may.
#![allow(clippy::unwrap_used)]

mod calls;
mod forgery;
mod layers;
mod life;
mod oneshot;
mod refused;
mod support;
mod zygote;
