//! What a person looks at and decides in.
