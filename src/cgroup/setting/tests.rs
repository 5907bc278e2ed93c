//! Names, spellings and roundings of every file.

use super::*;
use crate::units::Micros;

#[test]
fn every_file_reads_back_its_name_and_its_first_value() {
    let sizes = [HugePageSize::TWO_MIB, HugePageSize::ONE_GIB];
    for file in InterfaceFile::all(&sizes) {
        assert_eq!(file.to_string().parse(), Ok(file));
        let initial = Setting::initial(file);
        assert_eq!(initial.file(), file);
        assert_eq!(Setting::parse(file, &initial.value()), Some(initial));
    }
    assert!("memory.current".parse::<InterfaceFile>().is_err());
    assert!("hugetlb.3MB.max".parse::<InterfaceFile>().is_err());
}

/// Report cgroups-rs#128: no limit is `max`, nothing is `0`, and neither is any other number.
#[test]
fn no_limit_nothing_and_a_number_are_three_things() {
    type Made = fn(Limit<Bytes>) -> Setting;
    let size = HugePageSize::TWO_MIB;
    let bytes: [(InterfaceFile, Made); 6] = [
        (InterfaceFile::MemoryMin, Setting::MemoryMin),
        (InterfaceFile::MemoryLow, Setting::MemoryLow),
        (InterfaceFile::MemoryMax, Setting::MemoryMax),
        (InterfaceFile::MemorySwapMax, Setting::MemorySwapMax),
        (InterfaceFile::HugetlbMax(size), |limit| {
            Setting::HugetlbMax(HugePageSize::TWO_MIB, limit)
        }),
        (InterfaceFile::HugetlbRsvdMax(size), |limit| {
            Setting::HugetlbRsvdMax(HugePageSize::TWO_MIB, limit)
        }),
    ];
    let of_bytes = bytes.into_iter().flat_map(|(file, setting)| {
        [
            (file, setting(Limit::Max), "max"),
            (file, setting(Limit::At(Bytes::ZERO)), "0"),
            (file, setting(Limit::At(Bytes::mib(64))), "67108864"),
        ]
    });
    let cpu = |quota| {
        Setting::CpuMax(CpuMax {
            quota,
            period: CpuMax::DEFAULT_PERIOD,
        })
    };
    let others = [
        (InterfaceFile::PidsMax, Setting::PidsMax(Limit::Max), "max"),
        (InterfaceFile::PidsMax, Setting::PidsMax(Limit::At(0)), "0"),
        (InterfaceFile::PidsMax, Setting::PidsMax(Limit::At(7)), "7"),
        (InterfaceFile::CpuMax, cpu(Limit::Max), "max 100000"),
        (
            InterfaceFile::CpuMax,
            cpu(Limit::At(Micros(5000))),
            "5000 100000",
        ),
    ];
    for (file, setting, text) in of_bytes.chain(others) {
        assert_eq!(setting.value(), text, "{file}");
        assert_eq!(setting.kept(PageSize::FOUR_KIB), setting, "{file}");
        assert_eq!(Setting::parse(file, &format!("{text}\n")), Some(setting));
        // What version 1 had for no limit, what is beyond any counter, and nothing at all.
        for wrong in ["-1", "18446744073709551616", "", "unlimited"] {
            assert_eq!(Setting::parse(file, wrong), None, "{file} {wrong:?}");
        }
    }
}

/// Report cgroups-rs#112: what is read back has the name of what was written, for the sizes that the host
/// has, and never a name of version 1.
#[test]
fn huge_pages_are_read_back_where_they_were_written() {
    for size in ["64KB", "2MB", "32MB", "1GB"] {
        let known = HugePageSize::from_kernel_name(size).unwrap();
        for (name, file) in [
            (
                format!("hugetlb.{size}.max"),
                InterfaceFile::HugetlbMax(known),
            ),
            (
                format!("hugetlb.{size}.rsvd.max"),
                InterfaceFile::HugetlbRsvdMax(known),
            ),
        ] {
            assert_eq!(file.to_string(), name);
            assert_eq!(name.parse(), Ok(file));
            let setting = Setting::parse(file, "max\n").unwrap();
            assert_eq!(setting.file().to_string(), name);
        }
    }
    assert!(
        "hugetlb.2MB.limit_in_bytes"
            .parse::<InterfaceFile>()
            .is_err()
    );
}

#[test]
fn only_the_spelling_of_the_kernel_is_understood() {
    for (file, text) in [
        (InterfaceFile::CpuMax, "501000 00000"),
        (InterfaceFile::CpuMax, "+50000 100000"),
        (InterfaceFile::CpuWeight, "0100"),
        (InterfaceFile::MemoryMax, "+4096"),
        (InterfaceFile::HugetlbMax(HugePageSize::TWO_MIB), "00"),
        (InterfaceFile::PidsMax, "-0"),
        (InterfaceFile::CpusetCpus, "0,1"),
        (InterfaceFile::CpusetCpus, "0-0"),
        (InterfaceFile::CpusetMems, "512"),
    ] {
        assert_eq!(Setting::parse(file, text), None, "{file} {text}");
    }
}

#[test]
fn sizes_are_kept_as_the_kernel_keeps_them() {
    let page = PageSize::FOUR_KIB;
    let max = |n| Setting::MemoryMax(Limit::At(Bytes(n)));
    assert_eq!(max(4097).kept(page), max(4096));
    assert_eq!(
        max(i64::MAX as u64).kept(page),
        Setting::MemoryMax(Limit::Max)
    );
    let huge = |n| Setting::HugetlbMax(HugePageSize::TWO_MIB, Limit::At(Bytes(n)));
    assert_eq!(huge(3 << 20).kept(page), huge(2 << 20));
    // The last huge page below 2^63 is beyond the counter, as the last page is.
    let last = (1 << 63) - (2 << 20);
    let unlimited = Setting::HugetlbMax(HugePageSize::TWO_MIB, Limit::Max);
    assert_eq!(huge(last).kept(page), unlimited);
    let fresh = Setting::parse(unlimited.file(), "9223372036854771712\n");
    assert_eq!(fresh, Some(unlimited));
    assert_eq!(huge(last - 1).kept(page), huge(last - (2 << 20)));
}
