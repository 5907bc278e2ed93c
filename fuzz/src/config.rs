//! The configuration file.

use allotd::config::Config;

pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    match Config::parse(text) {
        Ok(config) => {
            let period = config.policy().cpu_cfs_quota_period;
            assert!((1000..=1_000_000).contains(&period.0));
            let _ = config.reserved_pids();
            let written = serde_json::to_string(&config).unwrap();
            let again = Config::parse(&written).unwrap_or_else(|e| panic!("{written}: {e}"));
            assert_eq!(again, config, "{written}");
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
