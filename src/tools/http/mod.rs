//! HTTP requests by the model.

mod answer;
pub(in crate::tools) mod http_request;
pub(in crate::tools) mod readable;
