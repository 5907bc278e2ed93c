#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| allotd_fuzz::protobuf::run(data));
