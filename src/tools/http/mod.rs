//! HTTP requests that the model makes.

mod answer;
pub(in crate::tools) mod http_request;
pub(in crate::tools) mod readable;
