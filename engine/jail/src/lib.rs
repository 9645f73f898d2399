//! Processes that have nothing: launch, zygote, frames, limits, verdicts, pool.
