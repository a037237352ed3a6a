"""The distributed engine: Apache Spark. Nothing outside this package imports PySpark."""
