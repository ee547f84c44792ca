use super::*;
use crate::cloud::tests::{Home, serve, serve_after};
use jiff::SignedDuration;
use serde_json::json;

const SSO: &str = "[profile work]\nsso_session = corp\nsso_account_id = 1234\nsso_role_name = Dev Role\nregion = eu-west-1\n\
    [sso-session corp]\nsso_start_url = https://corp.awsapps.com/start\nsso_region = us-east-1\n";
const EXPIRED_PROCESS: &str = "[profile work]\ncredential_process = echo '{\"AccessKeyId\": \"P\", \"SecretAccessKey\": \"ps\", \
    \"Expiration\": \"2020-01-01T00:00:00Z\"}'\n";
/// Path of the token file, whose name is the SHA-1 hash of `corp`.
const TOKEN_FILE: &str = ".aws/sso/cache/ee0bfd2552fbd840c02cc48b6e823320543c450f.json";

fn token(expires: &str) -> String {
    json!({"accessToken": "sso-token-1", "expiresAt": expires}).to_string()
}

/// Returns a sign-in that can be renewed: tokens with this number, valid until `expires`.
fn sign_in(number: u32, expires: &str) -> String {
    json!({"accessToken": format!("sso-token-{number}"), "expiresAt": expires, "clientId": "client",
        "clientSecret": "client-secret", "registrationExpiresAt": "2999-01-01T00:00:00Z",
        "refreshToken": format!("refresh-token-{number}")})
    .to_string()
}

/// Returns the response to the renewal of the first sign-in.
fn second_token() -> Value {
    json!({"accessToken": "sso-token-2", "expiresIn": 3600, "refreshToken": "refresh-token-2"})
}

fn role_of_portal() -> Value {
    json!({"roleCredentials": {"accessKeyId": "R", "secretAccessKey": "rs", "sessionToken": "rt"}})
}

async fn read(home: &Home, profile: Option<&str>, variables: &[(&str, &str)]) -> Result<AwsCredentials, String> {
    // Tests must not query the machine on which they run.
    let mut all = vec![("AWS_EC2_METADATA_DISABLED", "true")];
    all.extend_from_slice(variables);
    sources::credentials(&home.surroundings(&all), profile, "eu-west-1").await.map_err(|problem| problem.one_line())
}

fn keys(credentials: AwsCredentials) -> (String, String, Option<String>) {
    (credentials.access_key_id, credentials.secret_access_key, credentials.session_token)
}

fn expected(id: &str, secret: &str, token: Option<&str>) -> (String, String, Option<String>) {
    (id.to_owned(), secret.to_owned(), token.map(str::to_owned))
}

#[tokio::test]
async fn environment_credentials_override_profiles_unless_the_settings_name_a_profile() {
    let home = Home::with(&[
        (
            ".aws/config",
            "[default]\nregion = eu-west-1\n[profile process]\ncredential_process = echo '{\"Version\": 1, \"AccessKeyId\": \"P\", \"SecretAccessKey\": \"ps\", \"Expiration\": \"2999-01-01T00:00:00Z\"}'\n",
        ),
        (
            ".aws/credentials",
            "[default]\naws_access_key_id = D\naws_secret_access_key = ds\n[other]\naws_access_key_id = O\naws_secret_access_key = os\naws_session_token = ot\n",
        ),
    ]);
    let environment = [("AWS_ACCESS_KEY_ID", "E"), ("AWS_SECRET_ACCESS_KEY", "es"), ("AWS_SESSION_TOKEN", "et")];
    let named = [("AWS_PROFILE", "other")];
    for (profile, variables, of) in [
        (None, &environment[..], expected("E", "es", Some("et"))),
        (Some("default"), &environment, expected("D", "ds", None)),
        (None, &[], expected("D", "ds", None)),
        (None, &named, expected("O", "os", Some("ot"))),
        (Some("process"), &named, expected("P", "ps", None)),
    ] {
        assert_eq!(read(&home, profile, variables).await.map(keys), Ok(of), "{profile:?} {variables:?}");
    }
    let region = |profile| region_of_profile(&home.surroundings(&[]), profile).unwrap();
    assert_eq!((region(None).as_deref(), region(Some("other"))), (Some("eu-west-1"), None));
}

#[tokio::test]
async fn an_sso_token_is_exchanged_for_role_credentials() {
    let role = json!({"roleCredentials": {"accessKeyId": "R", "secretAccessKey": "rs", "sessionToken": "rt",
        "expiration": 32_503_680_000_000_i64}});
    let (address, requests) =
        serve(vec![(200, "", role), (401, "", json!({"message": "Session token not found or invalid"}))]).await;
    let home = Home::with(&[(".aws/config", SSO), (TOKEN_FILE, &token("2999-01-01T00:00:00Z"))]);
    let endpoint = [("AWS_ENDPOINT_URL_SSO", address.as_str())];
    let found = read(&home, Some("work"), &endpoint).await.unwrap();
    assert!(found.is_valid(Timestamp::now()) && found.until.is_some());
    assert_eq!(keys(found), expected("R", "rs", Some("rt")));
    let request = requests.lock().unwrap()[0].clone();
    assert!(request.starts_with("GET /federation/credentials?role_name=Dev+Role&account_id=1234 "), "{request}");
    assert!(request.contains("x-amz-sso_bearer_token: sso-token-1"), "{request}");
    let error = read(&home, Some("work"), &endpoint).await.unwrap_err();
    assert!(error.contains("has expired") && error.ends_with("run `aws sso login --profile work`"), "{error}");
}

#[tokio::test]
async fn an_expired_sso_token_is_renewed_and_saved_for_the_aws_tools() {
    let role = json!({"roleCredentials": {"accessKeyId": "R", "secretAccessKey": "rs", "sessionToken": "rt"}});
    let renewal = json!({"accessToken": "sso-token-2", "expiresIn": 3600, "refreshToken": "refresh-token-2"});
    let expired = json!({"startUrl": "https://corp.awsapps.com/start", "accessToken": "sso-token-1",
        "expiresAt": "2020-01-01T00:00:00Z", "clientId": "client", "clientSecret": "client-secret",
        "registrationExpiresAt": "2999-01-01T00:00:00Z", "refreshToken": "refresh-token-1"});
    let (oidc, renewals) =
        serve(vec![(200, "", renewal), (400, "", json!({"error": "invalid_grant", "error_description": "used twice"}))]).await;
    let (portal, requests) = serve(vec![(200, "", role.clone()), (200, "", role)]).await;
    let home = Home::with(&[(".aws/config", SSO), (TOKEN_FILE, &expired.to_string())]);
    let endpoints = [("AWS_ENDPOINT_URL_SSO", portal.as_str()), ("AWS_ENDPOINT_URL_SSO_OIDC", oidc.as_str())];
    // The renewed token is used and saved, so the second run does not renew it again.
    for _ in 0..2 {
        assert_eq!(read(&home, Some("work"), &endpoints).await.map(keys), Ok(expected("R", "rs", Some("rt"))));
    }
    let sent = renewals.lock().unwrap().clone();
    assert_eq!(sent.len(), 1);
    assert!(sent[0].starts_with("POST /token ") && sent[0].contains("\"refreshToken\":\"refresh-token-1\""), "{}", sent[0]);
    assert!(requests.lock().unwrap().iter().all(|request| request.contains("x-amz-sso_bearer_token: sso-token-2")));
    let saved = || -> serde_json::Value { serde_json::from_str(&home.read(TOKEN_FILE)).unwrap() };
    assert_eq!((&saved()["refreshToken"], &saved()["clientId"]), (&json!("refresh-token-2"), &json!("client")));
    for secret in ["sso-token-2", "refresh-token-1", "refresh-token-2", "client-secret"] {
        assert!(home.learnt.lock().unwrap().iter().any(|learnt| learnt == secret), "{secret} is not redacted");
    }
    // A refusal keeps the file and says how to sign in.
    let mut old = saved();
    old["expiresAt"] = json!("2020-01-01T00:00:00Z");
    home.write(TOKEN_FILE, &old.to_string());
    let error = read(&home, Some("work"), &endpoints).await.unwrap_err();
    assert_eq!(error, "cannot renew the AWS sign-in: used twice; run `aws sso login --profile work`");
    assert_eq!(saved(), old);
    // An expired registration is not used.
    old["registrationExpiresAt"] = json!("2020-01-01T00:00:00Z");
    home.write(TOKEN_FILE, &old.to_string());
    let error = read(&home, Some("work"), &endpoints).await.unwrap_err();
    assert!(error.contains("the AWS sign-in of the profile `work` has expired"), "{error}");
}

#[tokio::test]
async fn a_sign_in_that_cannot_be_renewed_is_used_until_it_expires() {
    let (oidc, renewals) = serve(vec![(503, "", json!({}))]).await;
    let (portal, requests) = serve(vec![(200, "", role_of_portal())]).await;
    let soon = (Timestamp::now() + SignedDuration::from_mins(4)).to_string();
    let home = Home::with(&[(".aws/config", SSO), (TOKEN_FILE, &sign_in(1, &soon))]);
    let endpoints = [("AWS_ENDPOINT_URL_SSO", portal.as_str()), ("AWS_ENDPOINT_URL_SSO_OIDC", oidc.as_str())];
    assert_eq!(read(&home, Some("work"), &endpoints).await.map(keys), Ok(expected("R", "rs", Some("rt"))));
    assert_eq!(renewals.lock().unwrap().len(), 1);
    assert!(requests.lock().unwrap()[0].contains("x-amz-sso_bearer_token: sso-token-1"));
    assert_eq!(home.read(TOKEN_FILE), sign_in(1, &soon));
}

#[tokio::test]
async fn a_sign_in_by_another_process_during_a_renewal_is_kept() {
    for (response, used) in [
        ((400, "", json!({"error": "invalid_grant"})), "x-amz-sso_bearer_token: sso-token-3"),
        ((200, "", second_token()), "x-amz-sso_bearer_token: sso-token-2"),
    ] {
        let home = Home::with(&[(".aws/config", SSO), (TOKEN_FILE, &sign_in(1, "2020-01-01T00:00:00Z"))]);
        let other = sign_in(3, "2999-01-01T00:00:00Z");
        let (path, content) = (home.surroundings(&[]).home.join(TOKEN_FILE), other.clone());
        let (oidc, _) = serve_after(vec![response], move || std::fs::write(&path, &content).unwrap()).await;
        let (portal, requests) = serve(vec![(200, "", role_of_portal())]).await;
        let endpoints = [("AWS_ENDPOINT_URL_SSO", portal.as_str()), ("AWS_ENDPOINT_URL_SSO_OIDC", oidc.as_str())];
        assert_eq!(read(&home, Some("work"), &endpoints).await.map(keys), Ok(expected("R", "rs", Some("rt"))), "{used}");
        let request = requests.lock().unwrap()[0].clone();
        assert!(request.contains(used), "{used}: {request}");
        assert_eq!(home.read(TOKEN_FILE), other, "{used}");
    }
}

#[tokio::test]
async fn a_revoked_sign_in_is_renewed_once() {
    let revoked = || (401, "", json!({"message": "Session token not found or invalid"}));
    let (oidc, renewals) = serve(vec![(200, "", second_token()), (400, "", json!({"error": "invalid_grant"}))]).await;
    let (portal, requests) = serve(vec![revoked(), (200, "", role_of_portal()), revoked()]).await;
    let home = Home::with(&[(".aws/config", SSO), (TOKEN_FILE, &sign_in(1, "2999-01-01T00:00:00Z"))]);
    let endpoints = [("AWS_ENDPOINT_URL_SSO", portal.as_str()), ("AWS_ENDPOINT_URL_SSO_OIDC", oidc.as_str())];
    assert_eq!(read(&home, Some("work"), &endpoints).await.map(keys), Ok(expected("R", "rs", Some("rt"))));
    let sent = requests.lock().unwrap().clone();
    assert!(sent[0].contains(": sso-token-1") && sent[1].contains(": sso-token-2"), "{sent:?}");
    assert!(home.read(TOKEN_FILE).contains("refresh-token-2"));
    let error = read(&home, Some("work"), &endpoints).await.unwrap_err();
    assert_eq!(error, "cannot renew the AWS sign-in: invalid_grant; run `aws sso login --profile work`");
    assert_eq!((renewals.lock().unwrap().len(), requests.lock().unwrap().len()), (2, 3));
    // A new token that is rejected is not renewed again.
    let (oidc, renewals) = serve(vec![(200, "", second_token())]).await;
    let (portal, requests) = serve(vec![revoked(), revoked()]).await;
    home.write(TOKEN_FILE, &sign_in(1, "2999-01-01T00:00:00Z"));
    let endpoints = [("AWS_ENDPOINT_URL_SSO", portal.as_str()), ("AWS_ENDPOINT_URL_SSO_OIDC", oidc.as_str())];
    let error = read(&home, Some("work"), &endpoints).await.unwrap_err();
    assert!(error.contains("has expired: Session token not found or invalid; run `aws sso login"), "{error}");
    assert_eq!((renewals.lock().unwrap().len(), requests.lock().unwrap().len()), (1, 2));
}

/// Permissions apply to root only after its thread has changed its file system user, which only Linux supports.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_refresh_token_is_not_used_if_the_new_one_cannot_be_saved() {
    use nix::unistd::{Uid, geteuid, setfsuid};
    use std::fs::{Permissions, set_permissions};
    use std::os::unix::fs::PermissionsExt;
    let (oidc, renewals) = serve(vec![(200, "", second_token())]).await;
    let home = Home::with(&[(".aws/config", SSO), (TOKEN_FILE, &sign_in(1, "2020-01-01T00:00:00Z"))]);
    let root = home.surroundings(&[]).home;
    let cache = root.join(".aws/sso/cache");
    for (path, mode) in [(&root, 0o755), (&root.join(TOKEN_FILE), 0o666), (&cache, 0o555)] {
        set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }
    let user = geteuid();
    if user.is_root() {
        setfsuid(Uid::from_raw(65_534));
    }
    let is_read_only = tempfile::tempfile_in(&cache).is_err() && std::fs::read(root.join(TOKEN_FILE)).is_ok();
    let found = read(&home, Some("work"), &[("AWS_ENDPOINT_URL_SSO_OIDC", oidc.as_str())]).await;
    setfsuid(user);
    set_permissions(&cache, Permissions::from_mode(0o755)).unwrap();
    if !is_read_only {
        return; // The user of this test cannot be restricted in this way.
    }
    let error = found.unwrap_err();
    assert!(error.contains("the AWS sign-in of the profile `work` has expired: cannot renew it, because `"), "{error}");
    assert_eq!(renewals.lock().unwrap().len(), 0);
}

#[tokio::test]
async fn credential_errors_name_the_command_that_renews_the_credentials() {
    let old = token("2020-01-01T00:00:00UTC");
    let process = "[profile work]\ncredential_process = sh -c 'echo session ended >&2; exit 1'\n";
    for (config, cached, says) in [
        (SSO, None, "not signed in to AWS with the profile `work`; run `aws sso login --profile work`"),
        (SSO, Some(old.as_str()), "the AWS sign-in of the profile `work` has expired; run `aws sso login --profile work`"),
        ("[default]\n", None, "no AWS profile `work`"),
        ("[profile work]\nregion = a\n", None, "no AWS credentials found"),
        ("[profile work]\nrole_arn = arn\n", None, "has `role_arn`, but no source of credentials; add `source_profile`"),
        ("[profile work]\nrole_arn = arn\nmfa_serial = m\n", None, "`mfa_serial`, which aye does not support"),
        ("[profile work]\nrole_arn = arn\ncredential_source = X\n", None, "is `X`; set it to Environment,"),
        ("[profile work]\nrole_arn = arn\ncredential_source = Environment\n", None, "the environment has no AWS keys"),
        ("[profile work]\nrole_arn = arn\nsource_profile = work\n", None, "the profile `work` has no keys"),
        ("[profile work]\nrole_arn = arn\nsource_profile = gone\n", None, "no AWS profile `gone`"),
        (
            "[profile work]\nrole_arn = a\nsource_profile = b\n[profile b]\nrole_arn = b\nsource_profile = work\n",
            None,
            "name each other",
        ),
        (
            "[profile work]\nrole_arn = a\nsource_profile = b\n[profile b]\nregion = r\n",
            None,
            "the AWS profile `b`, which assumes a role, has no",
        ),
        ("[profile work]\nrole_arn = a\nduration_seconds = 5\nsource_profile = b\n", None, "set it to 900 to 43200 seconds"),
        ("[profile work]\nrole_arn = a\nweb_identity_token_file = ~/none\n", None, "none` is missing or empty"),
        ("[profile work]\nsso_account_id = 1\n", None, "the AWS profile `work` has no `sso_start_url`"),
        (process, None, "exit code 1): session ended"),
        ("[profile work]\ncredential_process = echo x\n", None, "the program did not print JSON"),
        ("[profile work]\ncredential_process = echo {}\n", None, "no `AccessKeyId`"),
        ("[profile work]\ncredential_process = 'echo\n", None, "a quote is not closed"),
        (EXPIRED_PROCESS, None, "returned credentials that have expired; sign in again"),
    ] {
        let mut files = vec![(".aws/config", config)];
        files.extend(cached.map(|cached| (TOKEN_FILE, cached)));
        let error = read(&Home::with(&files), Some("work"), &[]).await.unwrap_err();
        assert!(error.contains(says), "{says}: {error}");
    }
}

#[tokio::test]
async fn roles_are_assumed_one_after_the_other_from_the_source_profile() {
    let json = |id: &str| {
        json!({"AssumeRoleResponse": {"AssumeRoleResult": {"Credentials":
            {"AccessKeyId": id, "SecretAccessKey": "s", "SessionToken": "t", "Expiration": 32_503_680_000.0}}}})
    };
    let xml = "<AssumeRoleResponse><AssumeRoleResult><Credentials><AccessKeyId>X</AccessKeyId><SecretAccessKey>a+/&amp;b=</SecretAccessKey>\
               <SessionToken>xt</SessionToken><Expiration>2999-01-01T00:00:00Z</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>";
    let denied = json!({"Error": {"Code": "AccessDenied", "Message": "not authorized to perform sts:AssumeRole"}});
    let (address, requests) = serve(vec![(200, "", json("first")), (200, "", json!(xml)), (403, "", denied)]).await;
    let config = "[profile work]\nrole_arn = arn:aws:iam::1:role/outer\nsource_profile = middle\nexternal_id = a b\nduration_seconds = 900\n\
                  [profile middle]\nrole_arn = arn:aws:iam::1:role/inner\nrole_session_name = me\nsource_profile = base\n";
    let keys_of_base = "[base]\naws_access_key_id = B\naws_secret_access_key = bs\n";
    let home = Home::with(&[(".aws/config", config), (".aws/credentials", keys_of_base)]);
    let endpoint = [("AWS_ENDPOINT_URL_STS", address.as_str())];
    let found = read(&home, Some("work"), &endpoint).await.unwrap();
    assert!(found.is_valid(Timestamp::now()) && found.until.is_some());
    assert_eq!(keys(found), expected("X", "a+/&b=", Some("xt")));
    let sent = requests.lock().unwrap().clone();
    assert!(sent[0].starts_with("POST / ") && sent[0].contains("Credential=B/"), "{}", sent[0]);
    assert!(sent[0].contains("/eu-west-1/sts/aws4_request") && sent[0].contains("accept: application/json"), "{}", sent[0]);
    assert!(sent[0].ends_with("RoleArn=arn%3Aaws%3Aiam%3A%3A1%3Arole%2Finner&RoleSessionName=me"), "{}", sent[0]);
    assert!(sent[1].contains("Credential=first/") && sent[1].contains("x-amz-security-token: t"), "{}", sent[1]);
    assert!(
        sent[1].contains("role%2Fouter&RoleSessionName=aye-") && sent[1].ends_with("&DurationSeconds=900&ExternalId=a+b"),
        "{}",
        sent[1]
    );
    assert_eq!(*home.learnt.lock().unwrap(), ["bs", "s"], "credentials between are redacted, too");
    let error = read(&home, Some("middle"), &endpoint).await.unwrap_err();
    let says = "cannot assume the role of the AWS profile `middle`: not authorized to perform sts:AssumeRole; check that this identity may \
                assume `arn:aws:iam::1:role/inner`";
    assert_eq!(error, says);
    let account = AwsAccount::new(home.surroundings(&[]), Some("work".to_owned()), "eu-west-1".to_owned());
    assert_eq!(account.remedy(), "run `aws sso login --profile base`");
}

#[tokio::test]
async fn an_expired_identity_that_assumes_a_role_has_a_hint_to_renew_it() {
    let config = "[profile work]\nrole_arn = arn:r\nsource_profile = base\n[profile env]\nrole_arn = arn:r\ncredential_source = Environment\n\
                  [profile web]\nrole_arn = arn:r\nweb_identity_token_file = ~/token\n";
    let keys_of_base = "[base]\naws_access_key_id = B\naws_secret_access_key = bs\naws_session_token = old\n";
    let home = Home::with(&[(".aws/config", config), (".aws/credentials", keys_of_base), ("token", "web-token")]);
    let json = json!({"Error": {"Code": "ExpiredToken", "Message": "The security token included in the request is expired"}});
    let xml =
        json!("<ErrorResponse><Error><Code>ExpiredTokenException</Code><Message>Token expired</Message></Error></ErrorResponse>");
    for (profile, response, says) in [
        ("work", json.clone(), "request is expired; renew the credentials of the AWS profile `base`, for example with `aws sso"),
        ("env", json, "request is expired; renew AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN"),
        ("web", xml, "Token expired; renew the token in `"),
    ] {
        let (address, _) = serve(vec![(400, "", response)]).await;
        let variables = [
            ("AWS_ENDPOINT_URL_STS", address.as_str()),
            ("AWS_ACCESS_KEY_ID", "E"),
            ("AWS_SECRET_ACCESS_KEY", "es"),
            ("AWS_SESSION_TOKEN", "et"),
        ];
        let error = read(&home, Some(profile), &variables).await.unwrap_err();
        assert!(error.contains(says), "{says}: {error}");
    }
}

#[tokio::test]
async fn web_identity_tokens_are_exchanged_without_a_signature() {
    let role = json!({"AssumeRoleWithWebIdentityResponse": {"AssumeRoleWithWebIdentityResult": {"Credentials":
        {"AccessKeyId": "W", "SecretAccessKey": "ws", "SessionToken": "wt", "Expiration": 32_503_680_000.0}}}});
    let (address, requests) = serve(vec![(200, "", role.clone()), (200, "", role)]).await;
    let config = "[profile work]\nrole_arn = arn:w\nweb_identity_token_file = ~/token\n";
    let home = Home::with(&[(".aws/config", config), ("token", "web-token\n")]);
    let path = home.surroundings(&[]).home.join("token").display().to_string();
    let variables = [
        ("AWS_ENDPOINT_URL_STS", address.as_str()),
        ("AWS_WEB_IDENTITY_TOKEN_FILE", path.as_str()),
        ("AWS_ROLE_ARN", "arn:e"),
        ("AWS_ROLE_SESSION_NAME", "pod"),
    ];
    for profile in [None, Some("work")] {
        assert_eq!(read(&home, profile, &variables).await.map(keys), Ok(expected("W", "ws", Some("wt"))), "{profile:?}");
    }
    let sent = requests.lock().unwrap().clone();
    assert!(
        sent.iter().all(|request| request.ends_with("&WebIdentityToken=web-token") && !request.contains("authorization")),
        "{sent:?}"
    );
    assert!(sent[0].contains("RoleArn=arn%3Ae&RoleSessionName=pod") && sent[1].contains("RoleArn=arn%3Aw"), "{sent:?}");
    assert!(home.learnt.lock().unwrap().contains(&"web-token".to_owned()));
}

#[tokio::test]
async fn container_and_instance_metadata_provide_role_credentials() {
    let given = || json!({"AccessKeyId": "M", "SecretAccessKey": "ms", "Token": "mt", "Expiration": "2999-01-01T00:00:00Z"});
    let home = Home::with(&[("token", "container-token\n")]);
    let (address, requests) = serve(vec![(200, "", given())]).await;
    let container =
        [("AWS_CONTAINER_CREDENTIALS_FULL_URI", address.as_str()), ("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", "~/token")];
    assert_eq!(read(&home, None, &container).await.map(keys), Ok(expected("M", "ms", Some("mt"))));
    assert!(requests.lock().unwrap()[0].contains("authorization: container-token"));
    let (address, requests) =
        serve(vec![(200, "", json!("metadata-token")), (200, "", json!("role\n")), (200, "", given())]).await;
    let machine = [("AWS_EC2_METADATA_DISABLED", "false"), ("AWS_EC2_METADATA_SERVICE_ENDPOINT", address.as_str())];
    assert_eq!(read(&home, None, &machine).await.map(keys), Ok(expected("M", "ms", Some("mt"))));
    let requests = requests.lock().unwrap().clone();
    assert!(requests[0].starts_with("PUT /latest/api/token "), "{}", requests[0]);
    assert!(requests[2].starts_with("GET /latest/meta-data/iam/security-credentials/role "), "{}", requests[2]);
    assert!(requests[2].contains("x-aws-ec2-metadata-token: metadata-token"), "{}", requests[2]);
}

#[tokio::test]
async fn credentials_are_read_once_and_registered_as_secrets() {
    let home = Home::with(&[(".aws/credentials", "[default]\naws_access_key_id = D\naws_secret_access_key = ds\n")]);
    let account = AwsAccount::new(home.surroundings(&[]), None, "eu-west-1".to_owned());
    let request = UnsignedRequest { method: "POST", host: "h", path: "/", body: b"" };
    for _ in 0..2 {
        let headers = account.headers(request).await.unwrap();
        assert!(
            headers[1].1.contains("Credential=D/") && headers[1].1.contains("/eu-west-1/bedrock/aws4_request"),
            "{headers:?}"
        );
    }
    assert_eq!(*home.learnt.lock().unwrap(), ["ds"]);
    assert_eq!(account.remedy(), "run `aws sso login`");
}
