//! SQLite behind the ports that proxy and engine define.
