//! The ways a server is reached.

mod depth;
mod http;
mod lines;
mod program;
mod sse;

pub(super) use http::Http;
pub(super) use program::Program;
pub(super) use sse::{Sse, SseError};

use depth::pruned;
use lines::Lines;
