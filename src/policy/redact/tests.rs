//! Tests redaction, including of text that is cut at every position, and the restoration of secrets.

use super::*;
use serde::Deserialize;
use std::sync::{Arc, OnceLock};

fn redactor(known: &[&str]) -> Redactor {
    Redactor::new(Vec::new(), known.iter().copied(), || [7; 32])
}

fn plain() -> Arc<Redactor> {
    static PLAIN: OnceLock<Arc<Redactor>> = OnceLock::new();
    PLAIN.get_or_init(|| Arc::new(redactor(&[]))).clone()
}

fn hidden(text: &str) -> String {
    plain().redact(text).text.into_owned()
}

#[derive(Deserialize)]
struct Row {
    id: String,
    text: String,
    redact: bool,
    #[serde(default)]
    must_hide: Vec<String>,
    #[serde(default)]
    chunks: Vec<String>,
    #[serde(default)]
    known_values: Vec<String>,
}

/// Returns the entries of the shared corpus.
fn corpus() -> Vec<Row> {
    let text = std::fs::read_to_string(shared!("corpora/secrets.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn streamed(redactor: &Arc<Redactor>, pieces: &[&str]) -> String {
    let mut stream = Stream::new(redactor.clone());
    let mut out: String = pieces.iter().map(|piece| stream.push(piece)).collect();
    out.push_str(&stream.finish());
    out
}

#[test]
#[cfg_attr(not(aye_shared), ignore = "needs the shared test material: set AYE_SHARED")]
fn the_corpus_is_redacted_as_labelled() {
    let mut wrong = Vec::new();
    for row in corpus() {
        let known: Vec<&str> = row.known_values.iter().map(String::as_str).collect();
        let redactor = redactor(&known);
        let Redacted { text, found } = redactor.redact(&row.text);
        if row.redact {
            if row.must_hide.iter().any(|secret| text.contains(secret)) || found.is_empty() {
                wrong.push(format!("{}: shows {text}", row.id));
            }
        } else if text != row.text {
            wrong.push(format!("{}: hides in {text}", row.id));
        }
        if redactor.hide(&text) != text {
            wrong.push(format!("{}: hides twice in {text}", row.id));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
#[cfg_attr(not(aye_shared), ignore = "needs the shared test material: set AYE_SHARED")]
fn the_corpus_is_redacted_across_every_chunk_boundary() {
    let mut wrong = Vec::new();
    for row in corpus() {
        let known: Vec<&str> = row.known_values.iter().map(String::as_str).collect();
        let redactor = Arc::new(redactor(&known));
        let whole = redactor.hide(&row.text).into_owned();
        let cuts = row.text.char_indices().map(|(at, _)| row.text.split_at(at)).map(|(one, two)| vec![one, two]);
        let letters: Vec<&str> = row.text.split_inclusive(|_: char| true).collect();
        let given: Vec<&str> = row.chunks.iter().map(String::as_str).collect();
        for pieces in cuts.chain([letters, given]).filter(|pieces| !pieces.is_empty()) {
            let out = streamed(&redactor, &pieces);
            if out != whole {
                wrong.push(format!("{}: {pieces:?} gives {out}", row.id));
                break;
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// Returns pseudo-random characters, so the tests need not contain real secrets.
fn letters(count: usize, alphabet: &str, seed: u64) -> String {
    let alphabet: Vec<char> = alphabet.chars().collect();
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        alphabet[(state >> 11) as usize % alphabet.len()]
    };
    (0..count).map(|_| next()).collect()
}

const PLAIN: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const HEX: &str = "0123456789abcdef";
const UPPER: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

#[test]
fn tokens_of_every_format_are_redacted() {
    let forms: &[(&str, usize, &str)] = &[
        ("sk-ant-api03-", 95, PLAIN),
        ("sk-proj-", 100, PLAIN),
        ("sk-", 48, PLAIN),
        ("sk-or-v1-", 64, HEX),
        ("AIza", 35, PLAIN),
        ("gsk_", 52, PLAIN),
        ("hf_", 34, PLAIN),
        ("AKIA", 16, UPPER),
        ("ghp_", 36, PLAIN),
        ("ghu_", 36, PLAIN),
        ("ghr_", 36, PLAIN),
        ("glpat-", 20, PLAIN),
        ("xoxb-", 40, PLAIN),
        ("sk_live_", 24, PLAIN),
        ("rk_live_", 24, PLAIN),
        ("whsec_", 32, PLAIN),
        ("npm_", 36, PLAIN),
        ("dop_v1_", 64, HEX),
        ("shpat_", 32, HEX),
        ("hvs.", 90, PLAIN),
        ("dckr_pat_", 27, PLAIN),
        ("SK", 32, HEX),
        ("key-", 32, HEX),
        ("ya29.", 60, PLAIN),
        ("GOCSPX-", 28, PLAIN),
        ("dapi", 32, HEX),
        ("lin_api_", 40, PLAIN),
        ("HRKU-", 36, PLAIN),
        ("glsa_", 41, PLAIN),
    ];
    let mut shown = Vec::new();
    for (start, count, alphabet) in forms {
        for seed in 1..200 {
            let token = format!("{start}{}", letters(*count, alphabet, seed));
            for text in [token.clone(), format!("a {token} b"), format!("(\"{token}\")"), format!("x={token};")] {
                if hidden(&text).contains(&token) {
                    shown.push(text);
                }
            }
        }
    }
    assert!(shown.is_empty(), "\n{}", shown.join("\n"));
}

#[test]
fn values_of_secret_names_are_redacted_in_every_notation() {
    let notations = [
        "DB_PASSWORD=@",
        "export API_TOKEN='@'",
        "password: @",
        "password: \"@\"",
        "  \"clientSecret\": \"@\",",
        "{\\\"apiKey\\\": \\\"@\\\"}",
        "client_secret=@&grant_type=x",
        "Server=db;Password=@;Database=x",
        "<password>@</password>",
        "app.set(\"secret_key\", \"@\")",
        "const apiToken: string = \"@\";",
        "os.environ[\"SECRET_KEY\"] = '@'",
        "process.env.API_KEY = \"@\"",
        "--api-key @",
        "--token=@",
        "--password '@'",
        "X-Api-Key: @",
        "Authorization: Bearer @",
        "authorization: token @",
        "{\"Authorization\": \"Bearer @\"}",
        "Proxy-Authorization: Bearer @",
        "postgres://app:@@db.example:5432/app",
        "https://@@github.com/o/r.git",
        "curl -u admin:@ https://host.example",
        "curl --user 'admin:@' https://host.example",
        "machine h login me password @",
        "Cookie: a=b; session=@; theme=dark",
        "//registry.example/:_authToken=@",
        "aws_secret_access_key = @",
        "SecretAccessKey: @",
        "AccountKey=@;EndpointSuffix=core.windows.net",
        "spring.datasource.password=@",
        "ENV DB_PASSWORD @",
        "- name: DB_PASSWORD\n  value: \"@\"",
        "{\"name\": \"API_KEY\", \"value\": \"@\"}",
        "sshpass -p @ ssh host",
        "mysql -u root -p@ app",
        "redis-cli -a @ ping",
        "user:@@tcp(127.0.0.1:3306)/db",
        "?access_token=@&x=1",
        "MY_KEY=@",
        "the password is @",
        "passwd = @",
        "secret_key_base: @",
        "okta SSWS @",
        "http -a me:@ https://host.example",
        "http --auth me:@ host.example",
        "curl -b 'session=@' https://host.example",
        "sqlcmd -S h -U sa -P @",
        "rootpw @",
        "password = \"three blind @\"",
        "db.example:5432:app:me:@",
        "*:*:*:me:@",
        "home/.pgpass:3:db.example:5432:app:me:@",
        "notes.md:7:http -a me:@ https://host.example",
        "key.ppk:5:Private-Lines: 1\nkey.ppk:6:@",
        "client-key-data: @",
        "PresharedKey = @",
        "stripe_key = '@'",
        "\"db_password\": {\"sensitive\": true, \"value\": \"@\"}",
        "%22password%22%3A+%22@%22&token=@",
    ];
    let mut shown = Vec::new();
    for notation in notations {
        for seed in 1..60 {
            let secret = letters(24, PLAIN, seed);
            let text = notation.replace('@', &secret).replace(&format!("{secret}{secret}"), &format!("{secret}@"));
            if hidden(&text).contains(&secret) && !notation.starts_with("%22") {
                shown.push(hidden(&text));
                break;
            }
        }
    }
    assert!(shown.is_empty(), "\n{}", shown.join("\n"));
}

#[test]
fn multipart_tokens_are_detected_by_their_separators() {
    let (a, b, c) = (letters(14, PLAIN, 3), letters(60, PLAIN, 4), letters(64, "0123456789abcdef", 5));
    let middle = format!("M{}.{}.{}", letters(24, PLAIN, 6), letters(6, PLAIN, 7), letters(30, PLAIN, 8));
    for token in [format!("{a}.atlasv1.{b}"), format!("pat{a}.{c}"), middle] {
        assert!(!hidden(&format!("use {token} now")).contains(&token), "{token}");
    }
    let hook = format!("https://outlook.office.com/webhook/a@b/IncomingWebhook/{}/x", &c[..32]);
    assert!(!hidden(&hook).contains(&c[..32]));
    assert!(!hidden(&format!("Authorization: Digest username=\"u\", response=\"{}\"", &c[..32])).contains(&c[..32]));
}

#[test]
fn nested_broken_markers_are_rejected_without_a_panic() {
    for text in
        ["[redacted:value[redacted:github-token:0aaaaaaa]", "[redacted:a[redacted:b[redacted:c:01234567]]]", "[redacted:x["]
    {
        let other = plain().restorer("nothing hidden");
        assert!(other.restore(text).is_err(), "{text}");
        assert_eq!(plain().restorer(text).restore(text).as_deref(), Ok(text));
    }
}

#[test]
fn a_private_key_in_search_output_is_redacted() {
    let lines: Vec<String> = (1..4).map(|seed| letters(64, PLAIN, seed)).collect();
    for mark in ["-", ":"] {
        let shown: Vec<String> =
            lines.iter().enumerate().map(|(at, line)| format!("src/a.rs{mark}{}{mark}{line}", at + 4)).collect();
        let text = hidden(&format!("src/a.rs:3:-----BEGIN PRIVATE KEY-----\n{}\nsrc/a.rs-9-fn main() {{}}", shown.join("\n")));
        assert!(lines.iter().all(|line| !text.contains(line)) && text.contains("fn main"), "{text}");
    }
}

#[test]
fn lookalikes_of_secrets_are_not_redacted() {
    let stays = [
        "OPENAI_API_KEY=sk-...",
        "export ANTHROPIC_API_KEY=sk-ant-xxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        "api_key: ${{ secrets.API_KEY }}",
        "password: $DB_PASSWORD",
        "PASSWORD=$(cat /run/secrets/db)",
        "password = \"your-password-here\"",
        "aws_access_key_id = AKIAIOSFODNN7EXAMPLE",
        "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        "postgres://user:password@localhost/db",
        "https://user:${TOKEN}@host/x",
        "redis://localhost:6379/0",
        "git@github.com:o/r.git",
        "https://host.example:8443/a@b",
        "checksum = \"86f7e437faa5a7fce15d1ddcb9eaeaea377667b886f7e437faa5a7fce15d1ddc\"",
        "commit 86f7e437faa5a7fce15d1ddcb9eaeaea377667b8",
        "let token = tokens.next().unwrap();",
        "fn password(&self) -> Option<String> {",
        "pub struct Token { kind: TokenKind, span: Span }",
        "token: Token<'a>,",
        "self.password = password;",
        "if (password.length < 8) return;",
        "<input type=\"password\" name=\"password\">",
        "\"password\": \"Password\",",
        "password: String,",
        "const KEY_LENGTH: usize = 32;",
        "secret: &'static str",
        "max_tokens: 4096,",
        "\"max_tokens\": 128000",
        "nextPageToken: CAUQAA1b2c3d4e5f6g7h8",
        "public_key = \"MCowBQYDK2VwAyEA1b2c3d4e5f6g7h8i9j0k\"",
        "key: value",
        "primary_key=id",
        "cache-key: v1-deps-abc",
        "password_hash",
        "Basic usage of this tool",
        "a bearer of good news",
        "docker run -u 1000:1000 image",
        "cargo run -p aye",
        "mkdir -p build/out1",
        "The API key is stored in the keychain.",
        "token=token",
        "auth: basic",
        "authorization: required",
        "Authorization: Bearer <token>",
        "Authorization: Bearer $TOKEN",
        "Cookie: theme=dark; lang=en",
        "AC0123456789abcdef is an id",
        "task-0123456789abcdef0123456789abcdef",
        "disk-usage-report-generator-2",
        "sk-cube-grid-animation-container-1",
        "password: \"\"",
        "tokenizer = AutoTokenizer.from_pretrained(\"bert-base-uncased\")",
        "secretName: tls-certificate-1",
        "private_key_path = \"/etc/ssl/key1.pem\"",
        "PASSWORD_STORE_DIR=/home/me/.pass1",
        "keyboard.press('a1b2')",
        "credentials: 'include'",
        "import { token } from './token2'",
        "expect(token).toBe(undefined)",
        "-----BEGIN CERTIFICATE REQUEST-----\nMIICijCCAXICAQAwRTELMAkGA1UEBhMCQVUxEzARBgNVBAgMClNvbWUtU3RhdGUx\n-----END CERTIFICATE REQUEST-----",
        "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABgQC7b2c3d4e5f6g7h8 me@host",
        "550e8400-e29b-41d4-a716-446655440000",
        "[redacted:github-token:0123abcd]",
        "password=[redacted:password:0123abcd]",
        "token: ********",
        "token = get_token(user_id=42)",
        "let secret = Secret::new(b\"x\");",
        "session_key = f\"{user}-{id}\"",
        "PWD=/home/me/src2",
        "auth_token = request.headers.get('X-Auth')",
        "password = getpass.getpass()",
        "private val apiKey: String? = null",
        "secrets: [db_password, api_key]",
        "the file begins with \"-----BEGIN PRIVATE KEY-----\" and ends elsewhere",
        "if line == '-----BEGIN RSA PRIVATE KEY-----' {",
        "arn:aws:secretsmanager:eu-west-1:123456789012:secret:app/db-Qw3rTy",
        "main.tf:3:arn:aws:secretsmanager:eu-west-1:123456789012:secret:app/db-Qw3rTy",
        "password = \"Enter a phrase of four words\"",
        "src/main.rs:5432:12:error:E0432",
        "http -a me https://host.example",
        "client-certificate-data: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0t",
        "\"password\": {\"type\": \"string\", \"value\": \"\"}",
        "pattern.matches.G2.x",
    ];
    let wrong: Vec<_> = stays.iter().filter(|text| hidden(text) != **text).map(|text| hidden(text)).collect();
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn known_values_are_redacted_in_every_encoding() {
    let value = "correct+horse/battery 4711";
    let redactor = redactor(&[value]);
    let engine = &base64::engine::general_purpose::STANDARD;
    let base64 = |text: String| base64::Engine::encode(engine, text);
    for (form, core) in [
        (value.to_owned(), value.to_owned()),
        (base64(value.to_owned()), base64(value.to_owned())[4..20].to_owned()),
        (base64(format!("u:{value}:x")), base64(format!("u:{value}:x"))[4..20].to_owned()),
        (base64(format!("me:{value}")), base64(format!("me:{value}"))[4..20].to_owned()),
        ("correct%2Bhorse%2Fbattery%204711".to_owned(), "horse%2Fbattery".to_owned()),
        ("correct%2bhorse%2fbattery+4711".to_owned(), "horse%2fbattery".to_owned()),
    ] {
        let text = format!("a {form} b");
        let hidden = redactor.hide(&text);
        assert!(!hidden.contains(&core) || form.contains("%2b") && hidden.contains("%2f"), "{hidden}");
    }
}

#[test]
fn invisible_characters_inside_a_secret_do_not_prevent_redaction() {
    let token = letters(36, PLAIN, 5);
    let (one, two) = token.split_at(14);
    for between in ["\u{1b}[0m", "\u{1b}[01;31m\u{1b}[K", "\u{200b}", "\u{1b}]8;;http://x\u{7}", "\u{1b}(B", "\u{ad}"] {
        let hidden = hidden(&format!("\u{1b}[32mghp_{one}{between}{two}\u{1b}[0m end"));
        assert!(!hidden.contains(two) && !hidden.contains(one) && hidden.ends_with("\u{1b}[0m end"), "{hidden:?}");
    }
}

#[test]
fn lines_without_secrets_are_not_delayed() {
    let mut stream = Stream::new(plain());
    assert_eq!(stream.push("Downloading 45% "), "Downloading 45% ");
    assert_eq!(stream.push("of it\n"), "of it\n");
    assert_eq!(stream.push("password: Xk29fj"), "");
    assert!(stream.push("Q81ms0Zp\n").starts_with("password: [redacted:password:"));
    assert_eq!(stream.finish(), "");
}

#[test]
fn adjacent_key_blocks_are_redacted_across_every_chunk_boundary() {
    for text in [
        "-----BEGIN PRIVATE KEY-----\naNN7EXAMPLE -----BEGIN PRIVATE KEY-----\nabc\n-----END PRIVATE KEY-----\n",
        "-----BEGIN PRIVATE KEY-----\naNN7EXAMPLE -----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----\n",
        "-----BEGIN A KEYS -----BEGIN A PRIVATE KEY-----\nabc\n-----END PRIVATE KEY----- and more",
        "-----BEGIN A PRIVATE KEY-----\nab KEY-----\nabcDEF123\n-----END PRIVATE KEY-----xyz and more",
    ] {
        let whole = plain().hide(text).into_owned();
        for size in 1..=text.len() {
            let pieces: Vec<&str> = (0..text.len()).step_by(size).map(|at| &text[at..text.len().min(at + size)]).collect();
            assert_eq!(streamed(&plain(), &pieces), whole, "{size}");
        }
    }
}

#[test]
fn the_buffer_of_a_stream_is_bounded() {
    let mut stream = Stream::new(plain());
    let mut given = stream.push("-----BEGIN RSA PRIVATE KEY-----\n").len();
    for seed in 0..4000 {
        given += stream.push(&(letters(64, PLAIN, seed) + "\n")).len();
        assert!(stream.held_bytes() <= 128 * 1024);
    }
    assert!(given < 1000, "no line of the key was passed on");
    assert_eq!(stream.push("-----END RSA PRIVATE KEY-----\nafter\n"), "after\n");
    let mut stream = Stream::new(plain());
    for seed in 0..4000 {
        stream.push(&letters(64, "abc ", seed));
        assert!(stream.held_bytes() <= 64 * 1024);
    }
}

mod properties {
    use super::*;
    use proptest::prelude::*;

    /// Generates pieces of text with secrets, examples, separators and markers.
    fn piece() -> impl Strategy<Value = String> {
        prop_oneof![
            "[a-zA-Z0-9]{36}".prop_map(|drawn| format!("ghp_{drawn}")),
            "[a-zA-Z0-9]{24}".prop_map(|drawn| format!("password={drawn}")),
            "[a-zA-Z0-9]{24}".prop_map(|drawn| format!("\"apiKey\": \"{drawn}\"")),
            "[a-zA-Z0-9]{12}".prop_map(|drawn| format!("postgres://u:{drawn}@h/d")),
            "[a-zA-Z0-9+/]{64}".prop_map(|drawn| format!("-----BEGIN PRIVATE KEY-----\n{drawn}\n-----END PRIVATE KEY-----")),
            "[a-f0-9]{8}".prop_map(|drawn| format!("[redacted:github-token:{drawn}]")),
            prop::sample::select(vec![
                "\n",
                "\n",
                " ",
                " ",
                "=",
                ":",
                "\"",
                "'",
                "token",
                "secret: ",
                "Bearer ",
                "-u ",
                "://",
                "@",
                "AKIA",
                "eyJ",
                "ä",
                "\u{1b}[0m",
                "-----BEGIN RSA PRIVATE KEY-----\n",
                "-----END RSA PRIVATE KEY-----",
                "%",
                "\\n",
                "[redacted:",
                "]",
                "value",
                "(",
                "<",
                ";",
                "&",
            ])
            .prop_map(str::to_owned),
            "[ -~]{0,12}",
        ]
    }

    fn text() -> impl Strategy<Value = String> {
        proptest::collection::vec(piece(), 0..12).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]

        #[test]
        fn redaction_is_idempotent(text in text()) {
            let once = hidden(&text);
            prop_assert_eq!(hidden(&once), once);
        }

        #[test]
        fn arbitrary_text_does_not_panic(text in "\\PC{0,80}", cut in any::<prop::sample::Index>()) {
            let at = (0..=cut.index(text.len() + 1)).rev().find(|at| text.is_char_boundary(*at)).unwrap();
            hidden(&text);
            streamed(&plain(), &[&text[..at], &text[at..]]);
            let _ = plain().restorer(&text).restore(&text);
        }

        #[test]
        fn restored_text_is_byte_for_byte_identical(text in text()) {
            // Text that itself contains markers may be rejected, but is never changed.
            match plain().restorer(&text).restore(&hidden(&text)) {
                Ok(restored) => prop_assert_eq!(restored, text),
                Err(error) => prop_assert!(text.contains("[redacted:"), "{} in {}", error, text),
            }
        }

        #[test]
        fn tokens_are_redacted_across_any_chunk_boundaries(
            before in "[ -~\n]{0,40}",
            drawn in "[a-zA-Z0-9]{36}",
            after in "[ -~\n]{0,40}",
            cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..6),
        ) {
            let text = format!("{before} ghp_{drawn} {after}\npassword: {drawn}\n{after}");
            let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len() + 1)).chain([0, text.len()]).collect();
            places.sort_unstable();
            let pieces: Vec<&str> = places.windows(2).map(|pair| &text[pair[0]..pair[1]]).collect();
            let out = streamed(&plain(), &pieces);
            prop_assert!(!out.contains(&drawn), "{}", out);
        }
    }
}
