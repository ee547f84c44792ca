use super::*;
use crate::protocol::{Price, Usage};

fn facts(name: &str) -> ModelFacts {
    Catalogue::default().facts(name)
}

#[test]
fn the_built_in_list_parses_with_plausible_prices() {
    let cards = entry::read(MODELS).unwrap();
    assert!(cards.models.len() >= 80);
    for card in &cards.models {
        let window = card.context_window.unwrap();
        assert!(card.max_output_tokens.is_none_or(|limit| limit < window), "{}", card.name);
        assert!(card.price.is_none() || !card.name.starts_with(OPEN), "{}: nobody in particular sells it", card.name);
        if let Some(price) = card.price {
            assert!(
                price.cache_read <= price.input && price.input <= price.cache_write && price.input < price.output,
                "{}",
                card.name
            );
        }
    }
    let date = cards.date.unwrap();
    for card in cards.models.iter().filter(|card| !card.name.starts_with(OPEN)) {
        assert!(card.source.as_ref().is_some_and(|source| source.starts_with("https://")), "{}: no source", card.name);
        assert!(card.verified.is_none_or(|day| day <= date), "{}: verified later than the list", card.name);
        assert!(card.tools.is_some() && card.efforts.is_some() || card.name.starts_with("deepseek/"), "{}", card.name);
    }
    let unique: std::collections::BTreeSet<_> = cards.models.iter().map(|card| &card.name).collect();
    assert_eq!(unique.len(), cards.models.len());
}

#[test]
fn models_are_found_by_name_by_dated_name_and_under_the_compatible_provider() {
    for name in ["anthropic/claude-sonnet-4-5", "anthropic/claude-sonnet-4-5-20250929"] {
        assert_eq!(
            (facts(name).max_output_tokens, facts(name).price.map(|price| price.input)),
            (Some(64_000), Some(3.0)),
            "{name}"
        );
    }
    for name in ["openai/gpt-4o", "openai-chat/gpt-4o", "openai/gpt-4o-2024-08-06"] {
        assert_eq!((facts(name).context_window, facts(name).price.map(|price| price.input)), (128_000, Some(2.5)), "{name}");
        assert_eq!(facts(name).name, name);
    }
    for name in ["x/y", "x/claude-next-9", "openai/gpt-4o-extra", "anthropic/claude-sonnet-4-9-20270101", "openai"] {
        assert_eq!((facts(name).context_window, facts(name).price), (UNKNOWN_WINDOW, None), "{name}");
    }
}

#[test]
fn models_under_other_providers_have_the_same_limits_and_no_price_unless_local() {
    for (name, window, output) in [
        ("gateway/claude-haiku-4-5", 200_000, Some(64_000)),
        ("openrouter/anthropic/claude-sonnet-4.5", 200_000, Some(64_000)),
        ("openrouter/openai/gpt-5-mini:free", 400_000, Some(128_000)),
        ("mine/us.anthropic.claude-sonnet-4-5-20250929-v1:0", 200_000, Some(64_000)),
        ("mine/claude-sonnet-4-5@20250929", 200_000, Some(64_000)),
        ("openrouter/google/gemini-2.5-pro-preview", 1_048_576, Some(65_536)),
        ("local/gpt-oss:20b", 131_072, None),
        ("local/qwen3-coder:30b", 262_144, None),
        ("local/Qwen/Qwen3-Coder-480B-A35B-Instruct", 262_144, None),
        ("local/qwen3:8b", 40_960, None),
    ] {
        let facts = facts(name);
        let price = name.starts_with(LOCAL).then_some(NOTHING);
        assert_eq!((facts.context_window, facts.max_output_tokens, facts.price), (window, output, price), "{name}");
        assert!(!Catalogue::default().lists(name), "{name}: its server may know better");
    }
    assert_eq!(facts("groq/openai/gpt-oss-120b").price.map(|price| price.output), Some(0.6), "its own price");
    // The maker's price is only a suggestion.
    for (name, maker) in [
        ("gateway/claude-haiku-4-5", Some("anthropic/claude-haiku-4-5")),
        ("mine/claude-sonnet-4-5@20250929", Some("anthropic/claude-sonnet-4-5")),
        ("mine/qwen3-coder:30b", None),
        ("mine/unheard-of", None),
        ("anthropic/claude-haiku-4-5", None),
        ("groq/openai/gpt-oss-120b", None),
    ] {
        let elsewhere = facts(name).price_elsewhere;
        assert_eq!(elsewhere.as_ref().map(|one| one.model.as_str()), maker, "{name}");
        assert_eq!(elsewhere.map(|one| one.price), maker.and_then(|maker| facts(maker).price), "{name}");
    }
    let own = "[[models]]\nname = \"mine/claude-haiku-4-5\"\nprice = { input = 1, output = 2 }\n";
    let priced = Catalogue::default().with_user_list(own).unwrap().facts("mine/claude-haiku-4-5");
    assert_eq!((priced.price.map(|price| price.output), priced.price_elsewhere), (Some(2.0), None));
}

#[test]
fn cached_tokens_are_billed_at_their_own_prices() {
    let usage = Usage {
        input_tokens: 1_000_000,
        cache_read_tokens: 600_000,
        cache_write_tokens: 100_000,
        output_tokens: 10_000,
        reasoning_tokens: 0,
    };
    let cost = facts("anthropic/claude-haiku-4-5").cost_usd(&usage).unwrap();
    assert!((cost - (0.3 + 0.06 + 0.125 + 0.05)).abs() < 1e-9, "{cost}");
    assert_eq!(facts("x/y").cost_usd(&usage), None);
    assert_eq!(facts("local/qwen3-coder").cost_usd(&usage), Some(0.0), "a server of this machine");
}

#[test]
fn supported_inputs_come_from_the_list_or_the_model_family() {
    for (name, images, reasoning) in [
        ("anthropic/claude-sonnet-5", true, true),
        ("anthropic/claude-3-5-haiku-20241022", true, false),
        ("anthropic/claude-sonnet-4-9", true, true),
        ("anthropic/claude-next-9", true, false),
        ("gateway/claude-sonnet-5", true, true),
        ("openai-chat/gpt-5.5", true, true),
        ("openai/gpt-4.1", true, false),
        ("openai/gpt-5.9-turbo", true, true),
        ("xai/grok-4", true, false),
        ("local/Qwen3-VL:8b", true, false),
        ("openai/deepseek-flash", true, false),
        ("openai/deepseek-v4-pro", false, false),
        ("local/qwen3-coder", false, false),
        ("local/some-model", false, false),
        ("local/gpt-oss:120b", false, true),
    ] {
        assert_eq!((facts(name).images, facts(name).reasoning), (images, reasoning), "{name}");
    }
}

#[test]
fn effort_levels_are_known_for_listed_models_only() {
    use crate::protocol::Effort::{High, Low, Max, Medium, Minimal, Off, Xhigh};
    for (name, efforts) in [
        ("anthropic/claude-opus-5-5", &[Low, Medium, High, Xhigh, Max][..]),
        ("anthropic/claude-sonnet-5-20260630", &[Off, Low, Medium, High, Xhigh, Max]),
        ("openrouter/anthropic/claude-opus-4.6", &[Off, Low, Medium, High, Max]),
        ("openai-chat/gpt-5.1", &[Off, Low, Medium, High]),
        ("openai/gpt-5-mini", &[Minimal, Low, Medium, High]),
        ("gemini/gemini-3-pro-preview", &[Low, High]),
        ("openai/gpt-5.9-turbo", &[Off, Low, Medium, High]),
        ("openai/gpt-4.1", &[]),
        ("local/gpt-oss:120b", &[Low, Medium, High]),
    ] {
        assert_eq!(facts(name).supported_efforts(), efforts, "{name}");
    }
    let own = Catalogue::default()
        .with_user_list(
            "[[models]]\nname = \"a/b\"\nefforts = [\"max\", \"none\", \"low\"]\n\
         [[models]]\nname = \"openai/gpt-5\"\nreasoning = false\n[[models]]\nname = \"openai/gpt-4.1\"\nreasoning = true\n",
        )
        .unwrap();
    assert_eq!(own.facts("a/b").supported_efforts(), [Off, Low, Max]);
    assert_eq!(own.facts("openai/gpt-5").supported_efforts(), []);
    assert_eq!(own.facts("openai/gpt-4.1").supported_efforts(), [Off, Low, Medium, High]);
}

const OWN: &str = r#"
reasoning_families = ["thinker"]

[[models]]
name = "anthropic/claude-sonnet-4-5"
price = { input = 1, output = 2.5 }

[[models]]
name = "mine/small"
context_window = 32_000
images = true
"#;

#[test]
fn a_user_list_overrides_and_adds_models() {
    let own = Catalogue::default().with_user_list(OWN).unwrap();
    let sonnet = own.facts("anthropic/claude-sonnet-4-5");
    let price = Price { input: 1.0, output: 2.5, cache_read: 1.0, cache_write: 1.0 };
    assert_eq!((sonnet.price, sonnet.context_window, sonnet.max_output_tokens), (Some(price), 200_000, Some(64_000)));
    let small = own.facts("mine/small");
    assert_eq!((small.context_window, small.images, small.reasoning), (32_000, true, false));
    assert!(own.lists("mine/small") && !own.lists("mine/other") && own.facts("mine/big-thinker").reasoning);
    assert_eq!(own.models_of_provider("mine").len(), 1);
    assert_eq!(own.models_of_provider("openai-chat").len(), own.models_of_provider("openai").len());
    assert_eq!(own.apply_user_entry(ModelFacts { context_window: 8_000, ..small.clone() }), small, "whatever a server says");
}

#[test]
fn list_errors_name_the_line_and_suggest_a_correction() {
    for (text, line, said) in [
        ("[[models]]\nname = \"a/b\"\ncontext_windw = 1\n", 3, "unknown key `context_windw`; did you mean `context_window`?"),
        ("[[modls]]\nname = \"a/b\"\n", 1, "unknown key `modls`; did you mean `models`?"),
        ("[[models]]\nname = \"b\"\n", 2, "`name`: expected a string like"),
        ("\n[[models]]\nimages = true\n", 2, "no `name`"),
        ("[[models]]\nname = \"a/b\"\nimages = \"yes\"\n", 3, "expected true or false"),
        ("[[models]]\nname = \"a/b\"\nefforts = [\"huge\"]\n", 3, "`efforts`: expected a list of off, minimal, low"),
        ("[[models]]\nname = \"a/b\"\ncontext_window = -1\n", 3, "a number of tokens"),
        ("[[models]]\nname = \"a/b\"\nprice = { input = 1 }\n", 3, "expected US dollars per million tokens"),
        ("[[models]]\nname = \"a/b\"\nprice = { input = nan, output = 1 }\n", 3, "expected US dollars"),
        ("[[models]]\nname = \"a/b\"\nprice = { inptu = 1, output = 1 }\n", 3, "did you mean `input`?"),
        ("models = 3\n", 1, "expected tables"),
        ("[[models]\n", 1, "expected TOML"),
    ] {
        let problems = Catalogue::default().with_user_list(text).unwrap_err();
        assert!(problems.iter().any(|(at, what)| *at == line && what.contains(said)), "{text}: {problems:?}");
    }
}

#[test]
fn the_nearest_model_name_is_suggested_for_a_typo() {
    let catalogue = Catalogue::default();
    for (asked, meant) in [
        ("anthropic/claude-sonet-4-5", Some("anthropic/claude-sonnet-4-5")),
        ("openai-chat/gpt5", Some("openai-chat/gpt-5")),
        ("gemini/gemini-2.5-flahs", Some("gemini/gemini-2.5-flash")),
        ("anthropic/gpt-5", None),
        ("mine/claude-sonet-4-5", None),
        ("anthropic/something-else", None),
    ] {
        assert_eq!(catalogue.nearest(asked).as_deref(), meant, "{asked}");
    }
}
