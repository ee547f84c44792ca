//! Requests to servers.

mod answer;
pub(in crate::tools) mod http_request;
mod readable;
