//! Requests for policy bundles, and the checks made before a bundle replaces the last valid policy.

use super::archive;
use super::cache::{CacheState, PolicyCache};
use super::signature::{self, VerificationKey};
use crate::config::PolicyService;
use crate::policy::Bundle;
use crate::protocol::Problem;
use crate::services::workspace;
use crate::sys::http::{Headers, HttpServer, Timeouts};
use crate::transfer::format::one_line;
use jiff::Timestamp;
use std::time::Duration;

/// Maximum size of a compressed bundle in bytes.
const BUNDLE_BYTES: usize = 4 << 20;
/// File name of the policy in the bundle.
const POLICY: &str = "policy.toml";
const MANIFEST: &str = ".manifest";
/// Time limits of a request.
const TIMEOUTS: Timeouts = Timeouts { connect: Duration::from_secs(3), idle: Duration::from_secs(5) };
/// Maximum length in characters of a revision or an ETag.
const TEXT_CHARS: usize = 200;

/// Bundle that was received, with its ETag. `None` if the cached policy is up to date.
type Received = Option<(Vec<u8>, Option<String>)>;

/// Requests the policy. If it is valid and differs from the last valid policy, it replaces that policy in the cache.
/// `source` identifies the policy's source and key, for which the cached policy must have been stored.
pub(crate) async fn refresh(
    (service, source): (&PolicyService, String),
    key: Option<&VerificationKey>,
    token: Option<&str>,
    cache: &PolicyCache,
) -> Result<(), Problem> {
    let old = cache.state(&source);
    let etag = old.as_ref().and_then(|state| state.etag.clone());
    let received = match &service.store {
        Some((store, name)) => from_store(store, name).await?,
        None => from_web(&service.url, etag.as_deref(), token).await?,
    };
    let Some((bytes, etag)) = received else {
        let state = CacheState { checked: Timestamp::now(), ..old.unwrap_or_default() };
        return cache.store(None, &state);
    };
    let wrong = |why: String| {
        let problem = Problem::new(format!("cannot use the policy bundle from `{}`", service.url)).because(why);
        problem.hint("the last good policy stays in effect; ask the bundle's owner to correct it")
    };
    let (policy, revision) = check(&bytes, key).map_err(wrong)?;
    let bundle = Bundle::parse_bytes(&policy, POLICY).map_err(|error| wrong(one_line(&error.to_string())))?;
    if bundle.expires_at.is_some_and(|end| end <= Timestamp::now()) {
        return Err(wrong("it has expired".to_owned()));
    }
    let is_same = old.is_some() && std::fs::read(cache.file()).is_ok_and(|known| known == policy);
    let notices =
        if is_same { old.map(|state| state.notices).unwrap_or_default() } else { notices(service, revision.as_deref(), &bundle) };
    let state = CacheState { source, etag, revision, checked: Timestamp::now(), notices };
    cache.store(Some(&policy).filter(|_| !is_same).map(Vec::as_slice), &state)
}

/// Returns notices about a newly loaded policy, including those of its entries that are ignored because they would
/// loosen restrictions.
fn notices(service: &PolicyService, revision: Option<&str>, bundle: &Bundle) -> Vec<String> {
    let revision = revision.map(|revision| format!(", revision {revision}")).unwrap_or_default();
    let mut notices = vec![format!("loaded the policy from `{}`{revision}", service.url)];
    let ignored = bundle.widens().iter();
    notices.extend(ignored.map(|(line, entry)| {
        format!("the policy from `{}` can only add restrictions; ignored line {line}: {}", service.url, one_line(entry))
    }));
    notices
}

/// Verifies the files and the signature of a bundle. Returns the policy and its revision, if it has one.
fn check(bytes: &[u8], key: Option<&VerificationKey>) -> Result<(Vec<u8>, Option<String>), String> {
    let mut files = archive::read(bytes)?;
    if let Some(key) = key {
        signature::verify(&files, key)?;
    }
    let manifest: serde_json::Value = files
        .get(MANIFEST)
        .map(|text| serde_json::from_slice(text))
        .transpose()
        .map_err(|error| format!("`{MANIFEST}` is not JSON: {error}"))?
        .unwrap_or_default();
    let revision = manifest["revision"].as_str().map(|text| one_line(text).chars().take(TEXT_CHARS).collect());
    let policy = files.remove(POLICY).ok_or_else(|| format!("`{POLICY}` is missing"))?;
    Ok((policy, revision))
}

async fn from_web(url: &str, etag: Option<&str>, token: Option<&str>) -> Result<Received, Problem> {
    let failed = |why: &dyn std::fmt::Display| {
        let problem = Problem::new(format!("cannot load the policy from `{url}`")).because(why);
        problem.hint("check the network connection, and `services.policy` in config.toml")
    };
    let server = HttpServer::new(url, TIMEOUTS).map_err(|error| failed(&error))?;
    let mut headers: Headers = Vec::new();
    headers.extend(etag.map(|etag| ("if-none-match".into(), etag.to_owned())));
    headers.extend(token.map(|token| ("authorization".into(), format!("Bearer {token}"))));
    let reply = server.get("", &headers).await.map_err(|error| failed(&error))?;
    match reply.status() {
        304 if etag.is_some() => return Ok(None),
        200 => {}
        _ => return Err(failed(&format!("the server responded with {}", reply.status_line()))),
    }
    let etag = reply.header("etag").filter(|etag| etag.len() <= TEXT_CHARS).map(str::to_owned);
    let length = reply.header("content-length").and_then(|length| length.parse::<usize>().ok());
    let body = reply.into_body(BUNDLE_BYTES).await.map_err(|error| failed(&error))?;
    let body = body.ok_or_else(|| failed(&format!("the bundle is larger than {BUNDLE_BYTES} bytes")))?;
    if length.is_some_and(|length| length != body.len()) {
        return Err(failed(&"the response is incomplete"));
    }
    Ok(Some((body, etag)))
}

async fn from_store(store: &crate::config::WorkspaceStore, name: &str) -> Result<Received, Problem> {
    let bucket = workspace::open(store)?;
    let found = bucket.read_object(name, BUNDLE_BYTES as u64).await?;
    let found = found.ok_or_else(|| {
        Problem::new(format!("cannot load the policy from `{}`", bucket.uri(name))).because("the object does not exist")
    })?;
    Ok(Some((found, None)))
}

#[cfg(test)]
mod tests {
    use super::super::archive::tests::archive;
    use super::*;

    #[test]
    fn a_bundle_needs_a_policy_and_may_have_a_revision() {
        let text = b"schema_version = 1\n".as_slice();
        let whole = archive(&[("policy.toml", b'0', text), (".manifest", b'0', br#"{"revision": "r\u001b7"}"#)]);
        let (policy, revision) = check(&whole, None).unwrap();
        assert_eq!(policy, text);
        assert!(revision.is_some_and(|revision| revision.starts_with('r') && !revision.contains('\u{1b}')));
        assert!(check(&archive(&[("data.json", b'0', b"{}")]), None).unwrap_err().contains("missing"));
        assert!(check(&archive(&[("policy.toml", b'0', text), (".manifest", b'0', b"{")]), None).is_err());
        assert!(check(b"", None).is_err());
    }
}
