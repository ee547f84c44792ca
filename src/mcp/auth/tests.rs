use super::http::{AuthClient, Place, classify};
use super::stored_token::{StoredToken, Validity};
use super::*;
use crate::mcp::{AuthRefusal, HttpKind, Reach, SignIn, Spec, Tokens};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

fn kept(lifetime: Option<u64>, refresh: bool) -> StoredToken {
    let mut response = serde_json::json!({"access_token": "a-1", "token_type": "bearer"});
    if let Some(seconds) = lifetime {
        response["expires_in"] = seconds.into();
    }
    if refresh {
        response["refresh_token"] = "r-1".into();
    }
    let credentials = serde_json::json!({"client_id": "c", "token_response": response, "token_received_at": 1000});
    let text = serde_json::json!({"url": "https://h/mcp", "credentials": credentials}).to_string();
    StoredToken::read(&text, "https://h/mcp").unwrap()
}

#[test]
fn tokens_are_bound_to_their_url() {
    let text = kept(None, false).to_json().unwrap();
    assert_eq!(StoredToken::read(&text, "https://h/mcp").unwrap().token().as_deref(), Some("a-1"));
    assert!(StoredToken::read(&text, "https://evil/mcp").is_none());
    assert!(StoredToken::read("{", "https://h/mcp").is_none());
    assert!(!format!("{:?}", kept(None, true)).contains("a-1"));
}

#[test]
fn tokens_are_renewed_before_they_expire() {
    let at = |seconds: u64| UNIX_EPOCH + Duration::from_secs(seconds);
    for (lifetime, now, age) in [
        (Some(3600), 1000, Validity::Good),
        (Some(3600), 1000 + 3600 - 61, Validity::Good),
        (Some(3600), 1000 + 3600 - 60, Validity::Ending),
        (Some(3600), 1000 + 3600, Validity::Over),
        (Some(20), 1005, Validity::Good),
        (Some(20), 1011, Validity::Ending),
        (None, 999_999, Validity::Good),
    ] {
        assert_eq!(kept(lifetime, true).validity(at(now)), age, "{lifetime:?} {now}");
    }
    assert!(kept(None, true).is_renewable() && !kept(None, false).is_renewable());
    assert_eq!(StoredToken::default().validity(SystemTime::now()), Validity::Over);
}

#[test]
fn remote_servers_cannot_name_local_or_plain_http_authorization_servers() {
    let far = AuthClient::for_server(&"https://h/mcp".parse().unwrap());
    let near = AuthClient::for_server(&"http://127.0.0.1:1/mcp".parse().unwrap());
    for (url, by_far, by_near) in [
        ("https://h/token", true, true),
        ("http://h/token", false, false),
        ("http://localhost:3/token", false, true),
        ("file:///etc/passwd", false, false),
        ("javascript:x", false, false),
        ("", false, false),
    ] {
        assert_eq!((far.check(url).is_ok(), near.check(url).is_ok()), (by_far, by_near), "{url}");
    }
    for (address, is) in [
        ("127.0.0.1", Place::Here),
        ("::1", Place::Here),
        ("::ffff:127.0.0.1", Place::Here),
        ("169.254.169.254", Place::Nowhere),
        ("::ffff:169.254.169.254", Place::Nowhere),
        ("fe80::1", Place::Nowhere),
        ("0.0.0.0", Place::Nowhere),
        ("::", Place::Nowhere),
        ("10.0.0.1", Place::There),
        ("93.184.216.34", Place::There),
    ] {
        assert_eq!(classify(address.parse().unwrap()), is, "{address}");
    }
}

/// In-memory token storage.
#[derive(Default)]
struct Drawer(std::sync::Mutex<Option<String>>);

impl Vault for Drawer {
    fn load(&self, _: &str, _: &str) -> Result<Option<String>, String> {
        Ok(self.0.lock().unwrap().clone())
    }

    fn save(&self, _: &str, _: &str, tokens: &str) -> Result<(), String> {
        *self.0.lock().unwrap() = Some(tokens.to_owned());
        Ok(())
    }

    fn lock_renewal(&self) -> Result<Box<dyn Send>, String> {
        Ok(Box::new(()))
    }
}

fn spec() -> Spec {
    Spec {
        name: "s".to_owned(),
        reach: Reach::Http {
            url: "https://h/mcp".to_owned(),
            headers: Vec::new(),
            sign_in: SignIn::OAuth { client_id: None, scopes: Vec::new(), redirect_port: None },
            kind: HttpKind::Auto,
        },
        off: None,
        of_project: false,
        plugin: None,
        retry_attempts: 0,
        retry_delay: Duration::ZERO,
        start_timeout: Duration::from_secs(1),
        call_timeout: Duration::from_secs(1),
        tool_timeouts: Vec::new(),
    }
}

#[tokio::test]
async fn a_sign_in_by_another_process_is_used_and_missing_scopes_are_requested_next_time() {
    let drawer = std::sync::Arc::new(Drawer::default());
    let keeper = TokenCache::new(drawer.clone());
    let refused = |used: Option<&str>| AuthRefusal::Unauthorized { challenge: None, used: used.map(str::to_owned) };
    assert_eq!(keeper.token(&spec()).await, Ok(None));
    assert_eq!(keeper.on_rejected(&spec(), refused(None)).await, Ok(None));
    drawer.save("s", "https://h/mcp", &kept(None, false).to_json().unwrap()).unwrap();
    assert_eq!(keeper.on_rejected(&spec(), refused(None)).await, Ok(Some("a-1".to_owned())));
    assert_eq!(keeper.token(&spec()).await, Ok(Some("a-1".to_owned())));
    assert_eq!(keeper.on_rejected(&spec(), refused(Some("a-1"))).await, Ok(None), "it cannot be renewed");
    let narrow = AuthRefusal::InsufficientScope {
        challenge: "Bearer error=\"insufficient_scope\", scope=\"read write\"".to_owned(),
        scope: None,
        used: Some("a-1".to_owned()),
    };
    assert_eq!(keeper.on_rejected(&spec(), narrow).await, Ok(None));
    let now = StoredToken::read(&drawer.load("s", "").unwrap().unwrap(), "https://h/mcp").unwrap();
    assert_eq!(now.wanted, ["read", "write"]);
}

#[tokio::test]
async fn a_server_with_a_configured_header_gets_no_token() {
    let drawer = std::sync::Arc::new(Drawer::default());
    drawer.save("s", "https://h/mcp", &kept(None, false).to_json().unwrap()).unwrap();
    let mut spec = spec();
    let Reach::Http { sign_in, .. } = &mut spec.reach else { panic!() };
    *sign_in = SignIn::None;
    assert_eq!(TokenCache::new(drawer).token(&spec).await, Ok(None));
}
