//! Requests to servers.

pub(in crate::tools) mod http_request;
