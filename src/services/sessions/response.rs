//! Responses from the session service, and their validation.

use super::policy::SessionPolicy;
use crate::ports::ServiceSession;
use crate::protocol::{Problem, SessionId};
use crate::text::clean_line;
use jiff::Timestamp;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Maximum length in characters of a text from the service.
const TEXT_CHARS: usize = 200;
/// Maximum number of feature flags.
const MAX_FLAGS: usize = 200;
/// Maximum size in bytes of a flag value when encoded as JSON.
const FLAG_BYTES: usize = 1_000;
/// Status values of a session that has ended.
const ENDED: [&str; 4] = ["SESSION_CANCELLED", "SESSION_COMPLETED", "SESSION_EXPIRED", "SESSION_FAILED"];

/// Session that the service has accepted.
#[derive(Debug)]
pub(crate) struct Handshake {
    pub session: ServiceSession,
    /// Session policy in TOML.
    pub policy: String,
    pub expires_at: Timestamp,
    pub notices: Vec<String>,
}

/// Reason why the handshake with the session service failed.
#[derive(Debug)]
pub(crate) enum HandshakeError {
    /// The service could not be reached, or its response was incomplete.
    NoAnswer(String),
    /// The service rejected the token, or no token is set.
    Unauthorized(Problem),
    /// The service rejected the session, or its response was unusable.
    Refused(Problem),
}

impl HandshakeError {
    /// Returns the error message on one line.
    pub(crate) fn one_line(&self) -> String {
        match self {
            Self::NoAnswer(why) => why.clone(),
            Self::Unauthorized(problem) | Self::Refused(problem) => problem.one_line(),
        }
    }
}

/// Outcome of reading a response.
#[derive(Debug)]
pub(super) enum ParsedHandshake {
    Accepted(Box<Handshake>),
    /// The session to be resumed has already ended.
    Ended,
    /// The response is unusable. Contains the reason and what to do about it.
    Rejected(String, &'static str),
}

/// Reads the body of a successful response. `resumed` is the session that was resumed, if any.
pub(super) fn read(body: &[u8], url: &str, own: &SessionId, resumed: Option<&ServiceSession>, now: Timestamp) -> ParsedHandshake {
    const INVALID: &str = "ask the owner of the session service to correct it";
    let parsed: Result<Value, _> = serde_json::from_slice(body);
    let members = match parsed {
        Ok(Value::Object(members)) => members,
        Ok(_) => return ParsedHandshake::Rejected("the response is not a JSON object".to_owned(), INVALID),
        Err(error) => return ParsedHandshake::Rejected(format!("the response is not JSON: {error}"), INVALID),
    };
    match status(&members) {
        Ok(Some(status)) if ENDED.contains(&status.as_str()) && resumed.is_some() => return ParsedHandshake::Ended,
        Ok(Some(status)) if ENDED.contains(&status.as_str()) => {
            return ParsedHandshake::Rejected(format!("the session has the status `{status}`"), INVALID);
        }
        Ok(_) => {}
        Err(why) => return ParsedHandshake::Rejected(why, INVALID),
    }
    let mut notices = Vec::new();
    match text(&members, "compatibilityStatus") {
        Ok(None) => {}
        Ok(Some(status)) if status.eq_ignore_ascii_case("compatible") => {}
        Ok(Some(status)) if status.eq_ignore_ascii_case("incompatible") => {
            let reason =
                text(&members, "compatibilityMessage").ok().flatten().map(|text| format!(": {text}")).unwrap_or_default();
            return ParsedHandshake::Rejected(
                format!("version {} of aye is incompatible with the service{reason}", env!("CARGO_PKG_VERSION")),
                "run `aye update`, or install the version that your organisation supports",
            );
        }
        Ok(Some(status)) => {
            notices.push(format!("the session service reports the compatibility `{status}` for this version of aye"));
        }
        Err(why) => return ParsedHandshake::Rejected(why, INVALID),
    }
    match accept(&members, (url, own, resumed), now) {
        Ok(mut handshake) => {
            handshake.notices.extend(notices);
            ParsedHandshake::Accepted(Box::new(handshake))
        }
        Err(why) => ParsedHandshake::Rejected(why, INVALID),
    }
}

fn accept(
    members: &Map<String, Value>,
    (url, own, resumed): (&str, &SessionId, Option<&ServiceSession>),
    now: Timestamp,
) -> Result<Handshake, String> {
    let session_id = match (text(members, "sessionId")?, resumed) {
        (Some(id), Some(resumed)) if id != resumed.session_id => {
            return Err(format!("the service resumed session `{id}` instead of `{}`", resumed.session_id));
        }
        (Some(id), _) => id,
        // When a session is resumed, the service may send only members that have changed.
        (None, Some(resumed)) => resumed.session_id.clone(),
        (None, None) => return Err("the response has no `sessionId`".to_owned()),
    };
    if !is_id(&session_id) {
        return Err(format!("`{session_id}` is not a session ID; expected letters, digits, `-`, `_`, `.` and `:`"));
    }
    let earlier_flags = || resumed.map(|session| session.feature_flags.clone()).unwrap_or_default();
    let feature_flags = flags(members.get("featureFlags"))?.unwrap_or_else(earlier_flags);
    let bundle = members.get("policyBundle").filter(|bundle| !bundle.is_null());
    let bundle = bundle.ok_or("the response has no `policyBundle`")?;
    let policy = SessionPolicy::new(bundle, &session_id, &feature_flags, now)
        .map_err(|why| format!("the policy bundle cannot be used: {why}"))?;
    let fact = |name: &str, earlier: Option<&String>| {
        let of_bundle = || text(bundle.as_object()?, name).ok().flatten();
        Ok::<_, String>(text(members, name)?.or_else(of_bundle).or_else(|| earlier.cloned()))
    };
    let (tenant, user) =
        (resumed.and_then(|session| session.tenant_id.as_ref()), resumed.and_then(|session| session.user_id.as_ref()));
    let session = ServiceSession {
        url: url.to_owned(),
        registered_id: own.clone(),
        workspace_id: fact("workspaceId", resumed.and_then(|session| session.workspace_id.as_ref()))?,
        tenant_id: fact("tenantId", tenant).and_then(|new| unchanged("tenantId", tenant, new))?,
        user_id: fact("userId", user).and_then(|new| unchanged("userId", user, new))?,
        session_id,
        policy_bundle_version: policy.version,
        feature_flags,
    };
    let host = url::Url::parse(url).ok().and_then(|url| url.host_str().map(str::to_owned)).unwrap_or_default();
    let ignored =
        |entry: &String| format!("the policy from the session service `{host}` can only add restrictions; ignored {entry}");
    let notices = policy.ignored.iter().map(ignored).collect();
    Ok(Handshake { session, policy: policy.text, expires_at: policy.expires_at, notices })
}

/// Returns an error if a session has a different tenant or user from the session that it continues.
pub(super) fn check_owner(earlier: &ServiceSession, new: &ServiceSession) -> Result<(), String> {
    unchanged("tenantId", earlier.tenant_id.as_ref(), new.tenant_id.clone())?;
    unchanged("userId", earlier.user_id.as_ref(), new.user_id.clone()).map(drop)
}

/// Returns a member of a resumed session. Returns an error if the response gives it a different value, because the
/// session would then belong to a different tenant or user.
fn unchanged(name: &str, old: Option<&String>, new: Option<String>) -> Result<Option<String>, String> {
    match old {
        Some(old) if new.as_ref() != Some(old) => {
            Err(format!("the response changes `{name}` from `{old}` to `{}`", new.unwrap_or_default()))
        }
        _ => Ok(new),
    }
}

/// Returns whether an ID can be used in a URL without being escaped.
fn is_id(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte);
    !text.is_empty() && text.bytes().all(is_plain) && text.bytes().any(|byte| byte != b'.')
}

/// Returns the session status given in the response, if any.
fn status(members: &Map<String, Value>) -> Result<Option<String>, String> {
    Ok(text(members, "sessionStatus")?.or(text(members, "status")?))
}

/// Returns a string member with control characters removed. Returns an error if the member is not a string.
fn text(members: &Map<String, Value>, name: &str) -> Result<Option<String>, String> {
    match members.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if text.chars().count() > TEXT_CHARS => {
            Err(format!("`{name}` is longer than {TEXT_CHARS} characters"))
        }
        Some(Value::String(text)) => Ok(Some(clean_line(text)).filter(|text| !text.is_empty())),
        Some(_) => Err(format!("`{name}` is not a string")),
    }
}

/// Returns the feature flags, or `None` if the response contains none.
fn flags(value: Option<&Value>) -> Result<Option<BTreeMap<String, Value>>, String> {
    let members = match value {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::Object(members)) => members,
        Some(_) => return Err("`featureFlags` is not an object".to_owned()),
    };
    if members.len() > MAX_FLAGS {
        return Err(format!("`featureFlags` has {} flags; the limit is {MAX_FLAGS}", members.len()));
    }
    let mut flags = BTreeMap::new();
    for (name, value) in members {
        if value.to_string().len() > FLAG_BYTES || name.chars().count() > TEXT_CHARS {
            return Err(format!("a flag is larger than {FLAG_BYTES} bytes"));
        }
        flags.insert(clean_line(name), value.clone());
    }
    Ok(Some(flags))
}

/// Returns the message contained in an error response, if any.
pub(super) fn error_message(body: &[u8]) -> Option<String> {
    let value: Value = serde_json::from_slice(body).ok()?;
    let error = value.get("error").filter(|error| error.is_object()).unwrap_or(&value);
    let message = error.get("message").or_else(|| value.get("error"))?.as_str()?;
    Some(clean_line(message).chars().take(TEXT_CHARS).collect::<String>()).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn response() -> Value {
        json!({
            "sessionId": "sess_1", "workspaceId": "ws_1", "compatibilityStatus": "compatible",
            "featureFlags": {"new": {"a": 1}, "webSearch": false},
            "policyBundle": {
                "schemaVersion": "1.0", "sessionId": "sess_1", "expiresAt": "2026-02-01T00:00:00Z", "tenantId": "tenant_1",
                "userId": "user_1", "capabilities": {"LLM.Call": {}},
            },
        })
    }

    fn outcome(body: &[u8], resumed: Option<&ServiceSession>) -> Result<Handshake, String> {
        let now = "2026-01-01T00:00:00Z".parse().unwrap();
        match read(body, "https://s.example/v1", &SessionId::new("own"), resumed, now) {
            ParsedHandshake::Accepted(handshake) => Ok(*handshake),
            ParsedHandshake::Ended => Err("ended".to_owned()),
            ParsedHandshake::Rejected(why, _) => Err(why),
        }
    }

    #[test]
    fn a_response_names_the_session_its_tenant_and_its_flags() {
        let handshake = outcome(response().to_string().as_bytes(), None).unwrap();
        let session = &handshake.session;
        assert_eq!((session.session_id.as_str(), session.registered_id.as_str()), ("sess_1", "own"));
        assert_eq!((session.tenant_id.as_deref(), session.user_id.as_deref()), (Some("tenant_1"), Some("user_1")));
        assert_eq!(session.feature_flags["new"], json!({"a": 1}));
        let mut changed = response();
        changed.as_object_mut().unwrap().remove("sessionId");
        changed.as_object_mut().unwrap().remove("workspaceId");
        changed.as_object_mut().unwrap().remove("featureFlags");
        changed["compatibilityStatus"] = json!("deprecated");
        let resumed = outcome(changed.to_string().as_bytes(), Some(session)).unwrap();
        assert_eq!(resumed.session, *session, "a resumed session keeps what the service does not repeat");
        assert_eq!(resumed.policy, handshake.policy, "what the flags switched off stays off");
        assert!(resumed.policy.contains("WebSearch"), "{}", resumed.policy);
        assert!(resumed.notices[0].contains("`deprecated`"), "{:?}", resumed.notices);
        changed["featureFlags"] = Value::Null;
        assert_eq!(outcome(changed.to_string().as_bytes(), Some(session)).unwrap().session, *session);
        changed["featureFlags"] = json!({});
        assert!(outcome(changed.to_string().as_bytes(), Some(session)).unwrap().session.feature_flags.is_empty());
        changed["sessionStatus"] = json!("SESSION_EXPIRED");
        assert_eq!(outcome(changed.to_string().as_bytes(), Some(session)).unwrap_err(), "ended");
    }

    #[test]
    fn invalid_responses_are_rejected_with_the_name_of_the_invalid_member() {
        for (name, value, why) in [
            ("sessionId", json!(7), "`sessionId` is not a string"),
            ("sessionId", Value::Null, "no `sessionId`"),
            ("sessionId", json!("../admin"), "not a session ID"),
            ("sessionId", json!(".."), "not a session ID"),
            ("sessionId", json!("x".repeat(300)), "longer than 200"),
            ("sessionId", json!("sess_2"), "is for session `sess_1`"),
            ("workspaceId", json!([]), "`workspaceId` is not a string"),
            ("tenantId", json!(true), "`tenantId` is not a string"),
            ("featureFlags", json!(["a"]), "`featureFlags` is not an object"),
            ("featureFlags", json!({"a": "x".repeat(2_000)}), "larger than"),
            ("policyBundle", Value::Null, "no `policyBundle`"),
            ("policyBundle", json!("{}"), "not an object"),
            ("compatibilityStatus", json!("incompatible"), "is incompatible with the service"),
            ("compatibilityStatus", json!(1), "`compatibilityStatus` is not a string"),
            ("sessionStatus", json!("SESSION_CANCELLED"), "has the status"),
        ] {
            let mut changed = response();
            changed[name] = value;
            let error = outcome(changed.to_string().as_bytes(), None).unwrap_err();
            assert!(error.contains(why), "{name}: {error}");
        }
        for (body, why) in [("", "not JSON"), ("<html>", "not JSON"), ("[]", "not a JSON object"), ("{}", "no `sessionId`")] {
            assert!(outcome(body.as_bytes(), None).unwrap_err().contains(why), "{body}");
        }
        let earlier = outcome(response().to_string().as_bytes(), None).unwrap().session;
        let other = ServiceSession { session_id: "sess_9".to_owned(), ..earlier };
        assert!(outcome(response().to_string().as_bytes(), Some(&other)).unwrap_err().contains("instead of `sess_9`"));
    }

    #[test]
    fn a_resumed_session_keeps_its_tenant_and_its_user() {
        let earlier = outcome(response().to_string().as_bytes(), None).unwrap().session;
        for (name, value) in [("tenantId", "tenant_2"), ("userId", "user_2")] {
            let (mut top, mut nested) = (response(), response());
            top[name] = json!(value);
            nested["policyBundle"][name] = json!(value);
            for changed in [top, nested] {
                let error = outcome(changed.to_string().as_bytes(), Some(&earlier)).unwrap_err();
                assert!(error.contains(&format!("changes `{name}`")) && error.contains(&format!("to `{value}`")), "{error}");
            }
        }
        let again = |tenant: &str| ServiceSession {
            session_id: "sess_2".to_owned(),
            tenant_id: Some(tenant.to_owned()),
            ..earlier.clone()
        };
        assert_eq!(check_owner(&earlier, &again("tenant_1")), Ok(()), "the session is registered again");
        let error = check_owner(&earlier, &again("tenant_2")).unwrap_err();
        assert_eq!(error, "the response changes `tenantId` from `tenant_1` to `tenant_2`");
        let unknown = ServiceSession { tenant_id: None, user_id: None, ..earlier.clone() };
        let named = outcome(response().to_string().as_bytes(), Some(&unknown)).unwrap().session;
        assert_eq!(named, earlier, "members that were not known may be added");
    }

    #[test]
    fn error_messages_are_one_line_of_plain_text() {
        for (body, expected) in [
            (r#"{"message": "no\u001b[31m tenant\nhere"}"#, Some("no tenant here")),
            (r#"{"error": {"code": "X", "message": "gone"}}"#, Some("gone")),
            (r#"{"error": "denied"}"#, Some("denied")),
            ("<html>", None),
            ("{}", None),
        ] {
            assert_eq!(error_message(body.as_bytes()).as_deref(), expected, "{body}");
        }
    }
}
