"""The benchmarks and their measuring tools. README.md in this folder has the figures."""
