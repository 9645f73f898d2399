//! What a harness speaks to.
