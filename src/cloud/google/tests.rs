use super::*;
use crate::cloud::tests::{Home, serve};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{RSA_PKCS1_2048_8192_SHA256, RsaKeyPair, UnparsedPublicKey};
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::pki_types::pem::PemObject;
use serde_json::json;

const FILE: &str = ".config/gcloud/application_default_credentials.json";

fn user(address: &str) -> String {
    json!({"type": "authorized_user", "client_id": "c", "client_secret": "s", "refresh_token": "r+1", "quota_project_id": "q",
        "token_uri": format!("{address}/token")})
    .to_string()
}

fn granted(token: &str, seconds: u64) -> (u16, &'static str, Value) {
    (200, "", json!({"access_token": token, "expires_in": seconds, "token_type": "Bearer"}))
}

#[tokio::test]
async fn a_user_refresh_token_is_exchanged_once_until_the_access_token_expires() {
    let (address, requests) = serve(vec![granted("t-1", 3600), granted("t-2", 60), granted("t-3", 3600)]).await;
    let home = Home::with(&[(FILE, &user(&address))]);
    let account = GoogleAccount::new(home.surroundings(&[]));
    let bearer = |token: &str| ("authorization".into(), format!("Bearer {token}"));
    for _ in 0..2 {
        let headers = account.headers().await.unwrap();
        assert_eq!(headers, [bearer("t-1"), ("x-goog-user-project".into(), "q".to_owned())]);
    }
    account.forget().await;
    assert_eq!(account.headers().await.unwrap()[0], bearer("t-2"));
    assert_eq!(account.headers().await.unwrap()[0], bearer("t-3"), "a token that ends soon is renewed");
    let requests = requests.lock().unwrap().clone();
    assert_eq!(requests.len(), 3);
    let form = "grant_type=refresh_token&client_id=c&client_secret=s&refresh_token=r%2B1";
    assert!(requests[0].starts_with("POST /token ") && requests[0].ends_with(form), "{}", requests[0]);
    assert_eq!(*home.learnt.lock().unwrap(), ["t-1", "t-2", "t-3"]);
}

#[tokio::test]
async fn a_service_account_signs_its_request() {
    let (address, requests) = serve(vec![granted("t", 3600)]).await;
    let key = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cases/google/service-account.key")).unwrap();
    let file = json!({"type": "service_account", "client_email": "me@p.iam", "private_key": key, "private_key_id": "k1",
        "token_uri": address});
    let home = Home::with(&[("key.json", &file.to_string())]);
    let account = GoogleAccount::new(home.surroundings(&[("GOOGLE_APPLICATION_CREDENTIALS", "~/key.json")]));
    account.headers().await.unwrap();
    let request = requests.lock().unwrap()[0].clone();
    let (_, body) = request.split_once("\r\n\r\n").unwrap();
    let form: Vec<(String, String)> = url::form_urlencoded::parse(body.as_bytes()).into_owned().collect();
    assert_eq!(form[0].1, "urn:ietf:params:oauth:grant-type:jwt-bearer");
    let parts: Vec<&str> = form[1].1.split('.').collect();
    let decode = |part: &str| URL_SAFE_NO_PAD.decode(part).unwrap();
    let read = |part: &str| serde_json::from_slice::<Value>(&decode(part)).unwrap();
    assert_eq!(read(parts[0]), json!({"alg": "RS256", "typ": "JWT", "kid": "k1"}));
    let claims = read(parts[1]);
    assert_eq!((&claims["iss"], &claims["aud"]), (&json!("me@p.iam"), &json!(address)));
    assert_eq!(claims["exp"].as_u64().unwrap() - claims["iat"].as_u64().unwrap(), 3600);
    let der = PrivatePkcs8KeyDer::from_pem_slice(key.as_bytes()).unwrap();
    let key = RsaKeyPair::from_pkcs8(der.secret_pkcs8_der()).unwrap();
    let public = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, key.public().as_ref());
    public.verify(format!("{}.{}", parts[0], parts[1]).as_bytes(), &decode(parts[2])).unwrap();
}

#[tokio::test]
async fn the_metadata_server_provides_a_token_if_there_is_no_file() {
    let (status, _, body) = granted("t", 600);
    let (address, requests) = serve(vec![(status, "metadata-flavor: Google\r\n", body)]).await;
    let host = address.trim_start_matches("http://");
    let home = Home::with(&[]);
    let account = GoogleAccount::new(home.surroundings(&[("GCE_METADATA_HOST", host)]));
    assert_eq!(account.headers().await.unwrap(), [("authorization".into(), "Bearer t".to_owned())]);
    assert!(requests.lock().unwrap()[0].to_lowercase().contains("metadata-flavor: google"));
}

#[tokio::test]
async fn credential_errors_name_the_command_that_renews_the_credentials() {
    let expired = json!({"error": "invalid_grant", "error_description": "Token has been expired or revoked."});
    let (address, _) = serve(vec![(400, "", expired), (503, "", json!({}))]).await;
    let file = user(&address);
    for (content, variables, says) in [
        (Some(file.as_str()), &[][..], "Token has been expired or revoked.; run `gcloud auth application-default login`"),
        (Some(&file), &[], "status 503; try again later"),
        (Some("{"), &[], "line 1: invalid JSON"),
        (Some("{\"type\":\"authorized_user\",\"client_secret\":\"hush\"}"), &[], "a required field of type `authorized_user`"),
        (Some("{\"type\":\"external_account\"}"), &[], "unsupported type `external_account`"),
        (
            Some("{\"type\":\"service_account\",\"client_email\":\"a\",\"private_key\":\"hush\"}"),
            &[],
            "not an RSA key in PKCS#8 PEM format",
        ),
        (None, &[("GOOGLE_APPLICATION_CREDENTIALS", "/no/file.json")], "the file does not exist"),
        (None, &[("GCE_METADATA_HOST", "127.0.0.1:1")], "no Google Cloud credentials found"),
    ] {
        let files: Vec<(&str, &str)> = content.into_iter().map(|content| (FILE, content)).collect();
        let home = Home::with(&files);
        let error = GoogleAccount::new(home.surroundings(variables)).headers().await.unwrap_err().one_line();
        assert!(error.contains(says) && !error.contains("hush"), "{error}");
    }
}
