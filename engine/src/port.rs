//! What the engine needs from a database: one trait per owner of tables.
//! `store` implements them on SQLite; every method is one transaction.
