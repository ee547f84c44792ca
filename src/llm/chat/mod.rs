//! Chat Completions: its address and its headers.

mod answer;
mod calls;
mod request;
mod wire;

pub(super) use answer::Reader;
pub(super) use request::body;

pub(super) const PATH: &str = "/chat/completions";

pub(super) fn headers(key: Option<String>) -> Vec<(&'static str, String)> {
    key.map(|key| ("authorization", format!("Bearer {key}"))).into_iter().collect()
}

#[cfg(test)]
mod tests;
